-- KEYS: record. attempts is the name of receive_count before v0.1.0.
local status, owner, fence, ends, failure, data, validation, count, attempts =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'owner', 'fence', 'until', 'error', 'data', 'validation', 'receive_count', 'attempts'))
if not (status and owner and tonumber(fence) and tonumber(ends)) then
  if redis.call('EXISTS', KEYS[1]) == 1 then return {'foreign'} end
  return {'none'}
end
local rest = 0
if ends ~= '0' then rest = tonumber(ends) - clock() end
return {'record', status, owner, tonumber(fence), ends, rest, failure or '', data or '', validation or '', tonumber(count or attempts) or 0,
  redis.call('PTTL', KEYS[1])}
