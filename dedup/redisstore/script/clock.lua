-- Put before every script. The server's clock in milliseconds: the same for a whole script, and nobody else's.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- Lua's own way to write a number turns 13 digits into an exponent.
local function whole(n) return string.format('%.0f', n) end

-- A record is not freed by its retention while its lease may be live, nor in the hour after.
local hour = 3600000
