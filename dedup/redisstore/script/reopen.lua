-- KEYS: record. ARGV: owner, fence and status as they were seen, the new owner, retention ms, the note or '', 1 to take a live
-- lease away, then the fields of a result, and error where it ends.
local now = clock()
local status, owner, fence, ends, length = unpack(redis.call('HMGET', KEYS[1], 'status', 'owner', 'fence', 'until', 'lease_length'))
if owner == ARGV[4] then return {'done'} end -- the reply was lost
if owner ~= ARGV[1] or fence ~= ARGV[2] or status ~= ARGV[3] then return {'changed'} end
if status == 'INPROGRESS' and ARGV[7] ~= '1' then
  local rest = remains(now, ends, length)
  if rest > 0 then return {'leased', rest} end
end
overwrite('status', 'INPROGRESS', 'owner', ARGV[4], 'fence', whole(math.max(now, tonumber(fence) + 1)), 'until', '0', 'note', ARGV[6])
redis.call('HDEL', KEYS[1], ARGV[6] == '' and 'note' or '', unpack(ARGV, 8))
local expires = redis.call('PTTL', KEYS[1])
if expires >= 0 and expires < tonumber(ARGV[5]) then redis.call('PEXPIREAT', KEYS[1], whole(now + ARGV[5])) end
return {'done'}
