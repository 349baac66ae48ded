-- Reads a whole number. Scripts whose calls count once, and those that look at a latch, begin with
-- this file.
--
-- KEYS[1] the number: a string
--
-- Returns the error WRONGTYPE if KEYS[1] holds anything else.
--
-- The scripts after it use value and number, which are what KEYS[1] holds: value is false if it is
-- not there, and number is 0 then; and what failed.lua, before it, defines.
local value = redis.call('GET', KEYS[1])
if value and not string.match(value, '^%-?%d+$') then
  return redis.error_reply('WRONGTYPE the key holds no whole number')
end
local number = tonumber(value or 0)

