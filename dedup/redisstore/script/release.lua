-- KEYS: record. ARGV: owner, the failure's text or ''. The owner stays in the record: see acquire.
local status, owner, ends = unpack(redis.call('HMGET', KEYS[1], 'status', 'owner', 'until'))
if owner ~= ARGV[1] then return {'lost'} end
if status ~= 'INPROGRESS' then return {'completed'} end
if ends == '0' then return {'done'} end
overwrite('until', '0')
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'error', ARGV[2])
else
  redis.call('HDEL', KEYS[1], 'error')
end
return {'done'}
