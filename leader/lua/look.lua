-- Returns who leads.
--
-- KEYS[1] the lock
-- KEYS[2] the record of the leader: see tell.lua
-- ARGV[1] not-after: ignored
--
-- Returns {1, time, time to live in ms, token, since, priority, identity, value}
--             since: in microseconds of the server's clock. All from token on are texts
--         {0, time}  nobody leads: nobody has the lock, or who has it has not said yet who it is
local record = redis.call('HMGET', KEYS[2], 'owner', 'token', 'since', 'priority', 'identity', 'value')
if not record[1] or redis.call('HEXISTS', KEYS[1], record[1]) == 0 then
  return {0, now}
end
return {1, now, redis.call('PTTL', KEYS[1]), record[2], record[3], record[4], record[5], record[6]}
