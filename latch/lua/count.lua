-- Tells the count. It follows read.lua.
--
-- Returns {1, time, the count}  0 where there is no such latch
return {1, now, math.max(number, 0)}
