-- Comes before the scripts of a counter. micros is the server's clock in microseconds.
local function micros()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- schedule returns a key's tat and line; nothing if the data is another program's.
local function schedule(now)
  local status, tat, line = unpack(redis.call('HMGET', KEYS[1], 'status', 'tat', 'line'))
  if not status then
    if redis.call('EXISTS', KEYS[1]) == 1 then return nil end
    return now, now
  end
  return tonumber(tat), tonumber(line)
end

-- keep writes a key as a released record. Its tat or its line is in the future.
local function keep(tat, line)
  redis.call('HSET', KEYS[1], 'status', 'INPROGRESS', 'owner', 'limit', 'fence', '0', 'until', '0', 'receive_count', '0',
    'tat', whole(tat), 'line', whole(line))
  redis.call('PEXPIREAT', KEYS[1], whole(math.ceil(math.max(tat, line) / 1000) + hour))
end
