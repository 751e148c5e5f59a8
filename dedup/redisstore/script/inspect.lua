-- KEYS: record. The reply has the server's time in ms, the record's rest in ms, its fields and their values.
local fields = redis.call('HGETALL', KEYS[1])
if #fields == 0 then return {'none'} end
return {'record', clock(), redis.call('PTTL', KEYS[1]), unpack(fields)}
