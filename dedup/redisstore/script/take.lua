-- KEYS: key. ARGV: tokens, then in µs step, tolerance, the horizon of several tokens, that of one, the least lag of tat or 0; 1 behind any
-- line. The reply has the tokens, the lag of the first one's base, and the lag of the line.
local now = micros()
local tat, line = schedule(now)
if not tat then return {'foreign'} end
local step, tolerance, ahead, within, floor = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local lag = math.max(tat - now, floor)
local first, n = lag - tolerance, 0
if ARGV[7] == '1' or line - now <= 1000000 then
  if first <= ahead then
    n = math.min(tonumber(ARGV[1]), math.floor((ahead - first) / step) + 1)
  elseif first <= within then
    n = 1
  end
end
if n > 0 or floor > tat - now then keep(now + lag + n * step, line) end
return {'taken', n, lag, line - now}
