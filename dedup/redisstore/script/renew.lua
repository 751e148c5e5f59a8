-- KEYS: record. ARGV: owner, lease ms.
local now = clock()
local status, owner, ends = unpack(redis.call('HMGET', KEYS[1], 'status', 'owner', 'until'))
-- An end of 0 says released: a late copy of a renewal must not lease the key again.
if owner ~= ARGV[1] or status ~= 'INPROGRESS' or ends == '0' then return {'lost'} end
ends = math.max(tonumber(ends), now + tonumber(ARGV[2]))
overwrite('until', whole(ends))
local rest = redis.call('PTTL', KEYS[1])
if rest >= 0 and now + rest < ends + hour then
  redis.call('PEXPIREAT', KEYS[1], whole(ends + hour))
end
return {'renewed', ends - now}
