-- Sets a key if a token passes: no greater one has passed. It may run twice.
--
-- KEYS[1] the greatest token of the key
-- KEYS[2] the key
-- ARGV[1] the token, a positive number in decimal digits, which does not begin with 0
-- ARGV[2] how long it is remembered, in ms
-- ARGV[3] the value
-- ARGV[4] how long the key stays, in ms; 0: for ever
--
-- Returns 1 if it is set, 0 if not
local newest = redis.call('GET', KEYS[1])
-- as texts: a number in Lua is exact up to 2^53 only
if newest and (#newest > #ARGV[1] or #newest == #ARGV[1] and newest > ARGV[1]) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if tonumber(ARGV[4]) > 0 then
  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
else
  redis.call('SET', KEYS[2], ARGV[3])
end
return 1
