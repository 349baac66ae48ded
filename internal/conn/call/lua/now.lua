-- Comes next in a script that reckons with the time: now is clock as a number.
local now = tonumber(clock)
