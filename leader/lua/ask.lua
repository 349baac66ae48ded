-- Asks the leader of one term to resign. It says which term, so it may run twice, and late.
--
-- KEYS[1] the lock
-- KEYS[2] the record of the leader: see tell.lua
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the token of the term
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel of changes
-- ARGV[5] who asks, in words
--
-- Returns {1, time}   asked, now or before
--         {0, time}   that term is over
--         {-1, time}  late: nothing was done
local record = redis.call('HMGET', KEYS[2], 'owner', 'token', 'asked')
if record[2] ~= ARGV[2] or redis.call('HEXISTS', KEYS[1], record[1]) == 0 then
  return {0, now}
end
if not record[3] then
  redis.call('HSET', KEYS[2], 'asked', ARGV[5])
end
publish(ARGV[3], ARGV[4], '0')
return {1, now}
