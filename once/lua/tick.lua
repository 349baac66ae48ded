-- Takes a tick, if nobody has taken it and its name is not paused.
--
-- KEYS[1] the tick: the owner that has it, with an expiry
-- KEYS[2] the pause of its name: see internal/pause/lua/begin.lua. It is not sent while the slot is on the move, so
--         that the tick is taken then
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that asks
-- ARGV[3] how long the tick is kept, in ms
--
-- Returns {1, time}        taken, now or by an earlier sending
--         {0, time}        another owner has it
--         {0, time, text}  nobody takes it now: the lines of the pause
--         {-1, time}       late: nothing was done
local pause = KEYS[2] and redis.call('GET', KEYS[2])
if pause and string.sub(pause, 1, 1) ~= '-' and redis.call('GET', KEYS[1]) ~= ARGV[2] then
  return {0, now, pause}
end
if redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3]) or redis.call('GET', KEYS[1]) == ARGV[2] then
  return {1, now}
end
return {0, now}
