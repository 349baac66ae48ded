-- Takes a tick, if nobody has taken it.
--
-- KEYS[1] the tick: the owner that has it, with an expiry
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that asks
-- ARGV[3] how long the tick is kept, in ms
--
-- Returns {1, time}   taken, now or by an earlier sending
--         {0, time}   another owner has it
--         {-1, time}  late: nothing was done
if redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3]) or redis.call('GET', KEYS[1]) == ARGV[2] then
  return {1, now}
end
return {0, now}
