-- Gives permits back, each once, and notifies the waiters. An id is never used again, so this may
-- run late and any number of times.
--
-- KEYS[1] how many permits are free
-- KEYS[2] the permits that are taken: a sorted set of ids by the ms of their expiry
-- ARGV[1] not-after: ignored
-- ARGV[2] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[3] the channel
-- ARGV[4] and on: the ids
--
-- Returns {1, time}  all of them were taken, and are free now
--         {0, time}  one was not taken, or its lease was over; the others are free now

local ms = math.floor(now / 1000)
local value = redis.call('GET', KEYS[1])
if value and not string.match(value, '^%-?%d+$') then
  return redis.error_reply('WRONGTYPE the key holds no whole number')
end

local ids, pairs, live = {}, {}, 0
for i = 4, #ARGV do
  local score = redis.call('ZSCORE', KEYS[2], ARGV[i])
  if score then
    ids[#ids + 1] = ARGV[i]
    pairs[#pairs + 1] = score
    pairs[#pairs + 1] = ARGV[i]
    if tonumber(score) > ms then
      live = live + 1
    end
  end
end
if #ids == 0 then
  return {0, now}
end

-- The first n of the ids are taken again. Some servers refuse unpack, so each id has a command.
local function undo(n, failure)
  for i = 1, n do
    redis.call('ZADD', KEYS[2], pairs[2 * i - 1], ids[i])
  end
  return failure
end

-- ZREM comes first: Redis allows it when memory is short, and after a first write it allows INCRBY
-- too.
for i = 1, #ids do
  local failure = failed('ZREM', redis.pcall('ZREM', KEYS[2], ids[i]))
  if failure then
    return undo(i - 1, failure)
  end
end
if value then
  local failure = failed('INCRBY', redis.pcall('INCRBY', KEYS[1], #ids))
  -- DECRBY does the same for a user who may not run INCRBY: without either, and without ZADD to take the
  -- ids again, the permits would be gone.
  if failure and type(redis.pcall('DECRBY', KEYS[1], -#ids)) == 'table' then
    return undo(#ids, failure)
  end
  local free = tonumber(value) + #ids
  if free > 0 then
    publish(ARGV[2], ARGV[3], string.format('%.0f', free))
  end
end
return {live == #ARGV - 3 and 1 or 0, now}
