-- KEYS: record. ARGV: the new owner, the data, how long it is kept in ms, then owner and fence as they were seen, '' where there was
-- none. The reply is that of inspect.
local now = clock()
local status, owner, fence = unpack(redis.call('HMGET', KEYS[1], 'status', 'owner', 'fence'))
if owner ~= ARGV[1] then -- else the reply was lost
  if not (status and owner and tonumber(fence or '')) and redis.call('EXISTS', KEYS[1]) == 1 then return {'foreign'} end
  if status and status ~= 'COMPLETED' or (owner or '') ~= ARGV[4] or (fence or '') ~= ARGV[5] then return {'changed'} end
  -- The first write deletes, so that a full memory does not refuse it: see overwrite.
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'status', 'COMPLETED', 'owner', ARGV[1], 'fence', whole(math.max(now, (tonumber(fence) or 0) + 1)), 'until', '0',
    'receive_count', '0', 'data', ARGV[2])
  redis.call('PEXPIREAT', KEYS[1], whole(now + ARGV[3]))
end
return {'record', now, redis.call('PTTL', KEYS[1]), unpack(redis.call('HGETALL', KEYS[1]))}
