-- Sets when the owner's hold ends, sooner or later than it would have: its last release, if the lock
-- is to stay held for a while. Nobody renews it after that.
--
-- KEYS[1] the lock
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner
-- ARGV[3] the time to live from now, in ms, at least 1
--
-- Returns {1, time, time to live in ms}  done
--         {0, time}                      the owner does not hold it
--         {-1, time}                     late: nothing was done

if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then
  return {0, now}
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, now, tonumber(ARGV[3])}
