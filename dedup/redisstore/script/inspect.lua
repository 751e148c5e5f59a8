-- KEYS: record.
local status, owner, fence, ends, failure, data, validation, attempts =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'owner', 'fence', 'until', 'error', 'data', 'validation', 'attempts'))
if not (status and owner and tonumber(fence) and tonumber(ends)) then
  if redis.call('EXISTS', KEYS[1]) == 1 then return {'foreign'} end
  return {'none'}
end
local rest = 0
if ends ~= '0' then rest = tonumber(ends) - clock() end
return {'record', status, owner, tonumber(fence), ends, rest, failure or '', data or '', validation or '', tonumber(attempts) or 0,
  redis.call('PTTL', KEYS[1])}
