-- KEYS: record. ARGV: owner, lease ms.
local now = clock()
local status, owner, ends, length = unpack(redis.call('HMGET', KEYS[1], 'status', 'owner', 'until', 'lease_length'))
-- An end of 0 says released: a late copy of a renewal must not lease the key again.
if owner ~= ARGV[1] or status ~= 'INPROGRESS' or ends == '0' then return {'lost'} end
ends = math.max(tonumber(ends), now + tonumber(ARGV[2]))
overwrite('until', whole(ends), 'lease_length', whole(math.max(tonumber(length) or 0, tonumber(ARGV[2]))))
local rest = redis.call('PTTL', KEYS[1])
if rest >= 0 and now + rest < ends + hour then
  redis.call('PEXPIREAT', KEYS[1], whole(ends + hour))
end
return {'renewed', tonumber(ARGV[2])} -- the record's own end may be later, and another delivery may shorten it
