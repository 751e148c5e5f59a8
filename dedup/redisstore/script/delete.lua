-- KEYS: record. ARGV: 1 to delete also what is held.
local status, ends = unpack(redis.call('HMGET', KEYS[1], 'status', 'until'))
if ARGV[1] ~= '1' and status == 'INPROGRESS' then
  local left = (tonumber(ends) or 0) - clock()
  if left > 0 then return {'held', left} end
end
redis.call('DEL', KEYS[1])
return {'done'}
