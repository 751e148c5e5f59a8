-- Comes before every script. clock is the server's clock in milliseconds, one value for a whole script.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- tostring would write a number of 13 digits with an exponent.
local function whole(n) return string.format('%.0f', n) end

-- A record is retained for an hour after its lease's end at least.
local hour = 3600000
