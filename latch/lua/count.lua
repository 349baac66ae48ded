-- Returns the count. It runs after number.lua, in one script with it.
--
-- ARGV[1] not-after, in microseconds of the server's clock
--
-- Returns {1, time, the count}  0 if there is no such latch
--         {-1, time}            late: nothing was done

return {1, now, math.max(number, 0)}
