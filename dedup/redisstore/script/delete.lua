-- KEYS: record. ARGV: 1 to delete a live lease too.
local status, ends = unpack(redis.call('HMGET', KEYS[1], 'status', 'until'))
if ARGV[1] ~= '1' and status == 'INPROGRESS' then
  local rest = (tonumber(ends) or 0) - clock()
  if rest > 0 then return {'leased', rest} end
end
redis.call('DEL', KEYS[1])
return {'done'}
