-- Returns the state of a waiter's generation of a latch. It runs after number.lua and
-- generations.lua, in one script with them.
--
-- KEYS[1] the count
-- KEYS[2] the record of generations
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the generation; 0: the one that there is now
--
-- Returns {0, time, generation, ms}  it is open, and runs out after ms; -1: never. If
--                                    Redisson has set it, it is recorded now
--         {1, time}                  it ended at zero, or there is none
--         {2, time}                  it was deleted, or ran out
--         {3, time}                  its state is not known any more
--         {-1, time}                 late: nothing was done
local open = number > 0
local left = redis.call('PTTL', KEYS[1])

if ARGV[2] == '0' then
  if not open then
    return {1, now}
  end
  local failure
  if last.state ~= 'o' then
    last, failure = begin(0)
  else
    failure = keep(last.ends)
  end
  return failure or {0, now, last.id, left}
end

local mine = parse(redis.call('ZRANGEBYSCORE', KEYS[record], ARGV[2], ARGV[2]))
local state = mine.state
if state == 'o' then
  if open and last.id == mine.id then
    keep(mine.ends)
    return {0, now, mine.id, left}
  end
  state = ended(mine)
end
if state == 'd' then
  return {2, now}
elseif state == 'z' then
  return {1, now}
elseif last.state then
  return {3, now}
elseif open then
  -- The whole record is gone, and with it what could tell generations apart.
  return {0, now, tonumber(ARGV[2]), left}
end
-- Count and record are gone. Each look keeps the record for a day, so Redis has lost its
-- data, or both were deleted: nothing says that the count came to zero.
return {3, now}
