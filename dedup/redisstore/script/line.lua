-- KEYS: key. ARGV: the length of the places in µs. The reply has the lag of the first place.
local now = micros()
local tat, line = schedule(now)
if not tat then return {'foreign'} end
local place = math.max(tat, line, now)
keep(tat, place + tonumber(ARGV[1]))
return {'place', place - now}
