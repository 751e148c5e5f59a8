-- Comes before every script. clock is the server's clock in milliseconds, one value for a whole script.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- tostring would write a number of 13 digits with an exponent.
local function whole(n) return string.format('%.0f', n) end

-- A record is retained for an hour after its lease's end at least.
local hour = 3600000

-- overwrite sets fields of a record that is there, also where the server's memory is full. Redis then refuses a script's
-- first write if that may need memory, and no later one, since it would stop the script in its middle. So the first write
-- deletes a field that no record has. (Scripts with flags=allow-oom may write too, but only from Redis 7 on.)
local function overwrite(...)
  redis.call('HDEL', KEYS[1], '')
  redis.call('HSET', KEYS[1], ...)
end

-- remains is what remains of a lease in ms. A lease with more left than it was granted for was written while the server's clock was
-- ahead. It is shortened, so that the event of an owner that crashed waits for one lease. The owner may live: it counts from when it
-- sent its last write, and that was before now.
local function remains(now, ends, length)
  local rest = (tonumber(ends) or 0) - now
  length = tonumber(length)
  if length and rest > length then
    rest = length
    overwrite('until', whole(now + rest))
  end
  return rest
end
