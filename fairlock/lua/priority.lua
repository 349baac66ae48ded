
-- What a waiter with a priority adds to enter.lua: its place in the queue is as if it had come earlier. It
-- runs after token.lua and queue.lua and before enter.lua, in one script with them, which has the contract
-- of enter.lua, and also:
--
-- The last of ARGV, which enter.lua does not see: how much earlier, in microseconds, a multiple of ten
local ahead = tonumber(table.remove(ARGV))

-- Returns the number for an owner that joins at the time now, in microseconds. enter.lua uses this function in
-- place of that of queue.lua. No two owners have one number, and none is a multiple of ten: see there. The
-- greatest number in the queue stays that of an owner without a priority, unless none of those waits.
local came = coming
coming = function(now)
  local number = came(now) - ahead
  local text = string.format('%.0f', number)
  while number % 10 == 0 or redis.call('ZRANGE', KEYS[3], text, text, 'BYSCORE')[1] do
    number = number + 1
    text = string.format('%.0f', number)
  end
  return number
end

