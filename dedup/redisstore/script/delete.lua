-- KEYS: record. ARGV: 1 to delete a live lease too, and what is no record.
if ARGV[1] ~= '1' then
  local status, ends, length = unpack(redis.call('HMGET', KEYS[1], 'status', 'until', 'lease_length'))
  if status == 'INPROGRESS' then
    local rest = remains(clock(), ends, length)
    if rest > 0 then return {'leased', rest} end
  end
end
redis.call('DEL', KEYS[1])
return {'done'}
