-- KEYS: record. ARGV: owner, then fields and their values. The lease's end does not matter: a takeover would have changed the owner.
local status, owner = unpack(redis.call('HMGET', KEYS[1], 'status', 'owner'))
if owner ~= ARGV[1] then return {'lost'} end
if status == 'COMPLETED' then return {'done'} end -- a late copy must not replace the first result
overwrite('status', 'COMPLETED')
if ARGV[2] then redis.call('HSET', KEYS[1], unpack(ARGV, 2)) end
return {'done'}
