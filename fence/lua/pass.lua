-- Lets a token pass, unless a greater one has passed. It may run twice.
--
-- KEYS[1] the greatest token of the resource
-- ARGV[1] the token, a positive number in decimal digits, which does not begin with 0
-- ARGV[2] how long it is remembered, in ms
--
-- Returns 1 if it passes, 0 if not
local newest = redis.call('GET', KEYS[1])
-- as texts: a number in Lua is exact up to 2^53 only
if newest and (#newest > #ARGV[1] or #newest == #ARGV[1] and newest > ARGV[1]) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
