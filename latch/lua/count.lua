-- Returns the count. It runs after read.lua, in one script with it.
--
-- Returns {1, time, the count}  0 if there is no such latch
return {1, now, math.max(number, 0)}
