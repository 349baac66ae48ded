-- What a script begins with that answers the time: now is the server's time in microseconds, and
-- time what TIME has answered.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
