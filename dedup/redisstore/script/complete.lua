-- KEYS: record. ARGV: owner, validation, result, the text of a skip. The lease's end does not matter: a takeover would have changed the owner.
local status, owner = unpack(redis.call('HMGET', KEYS[1], 'status', 'owner'))
if owner ~= ARGV[1] then return {'lost'} end
if status == 'COMPLETED' then return {'done'} end -- a late copy must not replace the first result
overwrite('status', 'COMPLETED')
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'validation', ARGV[2]) end
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'data', ARGV[3]) end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'error', ARGV[4]) end
return {'done'}
