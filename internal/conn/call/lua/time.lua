-- Begins a script that answers the time: clock is the server's time in microseconds, as a text.
local time = redis.call('TIME')
local clock = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
