-- KEYS: record. ARGV: owner, lease ms, retention ms, attempt, 1 to refuse the record of a crashed owner, this server's time
-- in ms when the request was sent, as its sender knows it, and how old in ms the request may be.
local now = clock()
local status, owner, fence, ends, failure, data, validation, length =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'owner', 'fence', 'until', 'error', 'data', 'validation', 'lease_length'))
local taken = 0 -- the fence of an owner that crashed
if status then
  if not (owner and fence and ends) then return {'foreign'} end
  if status == 'COMPLETED' then return {'completed', data or '', validation or ''} end
  fence, ends = tonumber(fence), tonumber(ends)
  if not (fence and ends) then return {'foreign'} end
  if owner == ARGV[1] then
    -- The claim was granted before: its reply was lost, or this is a late copy. Neither the end nor the fence grows. A
    -- released record keeps its owner for this: a late copy must not lease the key again, because no handler would run.
    if ends == 0 then return {'lost'} end
    return {'own', fence, remains(now, ends, length), failure or ''}
  end
  if ends > now then return {'leased', remains(now, ends, length)} end
  if ends > 0 then
    if ARGV[5] == '1' then return {'crashed'} end
    taken = fence
  end
  fence = math.max(now, fence + 1) -- two owners in one millisecond, or a clock that was set back
elseif redis.call('EXISTS', KEYS[1]) == 1 then
  return {'foreign'}
else
  fence = now
end
-- An old request is not granted: its caller may have given it up, and no handler would run. Neither is one from the future:
-- its sender knows another server's clock, and its age is not known. The reply tells the time, for another request.
local age = now - tonumber(ARGV[6])
if age > tonumber(ARGV[7]) or age < -100 then return {'late', now} end
ends = now + tonumber(ARGV[2])
redis.call('HSET', KEYS[1], 'status', 'INPROGRESS', 'owner', ARGV[1], 'fence', whole(fence), 'until', whole(ends), 'receive_count', ARGV[4],
  'lease_length', ARGV[2])
redis.call('PEXPIREAT', KEYS[1], whole(math.max(now + tonumber(ARGV[3]), ends + hour)))
return {'granted', fence, ends - now, failure or '', taken, now, taken > 0 and owner or ''}
