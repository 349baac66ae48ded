-- Gives a tick back. The owner is never used again, so this may run late and any number of times.
--
-- KEYS[1] the tick
-- ARGV[1] not-after: ignored
-- ARGV[2] the owner
--
-- Returns {1, time}  given back
--         {0, time}  the owner has not got it
if redis.call('GET', KEYS[1]) ~= ARGV[2] then
  return {0, now}
end
redis.call('DEL', KEYS[1])
return {1, now}
