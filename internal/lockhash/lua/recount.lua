-- Sets how many leases the owner has on the lock. The count is absolute, so a call that is sent
-- twice counts once. It never makes a hold.
--
-- KEYS[1] the lock
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the field of the hold: the owner, or for a writer of a read-write lock <owner>:write
-- ARGV[3] the count
-- ARGV[4] the least time to live of the lock afterwards, in ms; 0: leave it as it is
--
-- Returns {1, time, time to live in ms}  done
--         {0, time}                      the owner does not hold it
--         {-1, time}                     late: nothing was done

if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return {0, now}
end

-- PEXPIRE comes first, and runs even if it changes nothing: Redis allows it when memory is short,
-- and after a first write it allows HSET too.
local ttl = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[4]))
if ttl > 0 then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
return {1, now, ttl}
