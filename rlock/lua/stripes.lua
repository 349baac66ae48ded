-- Returns into how many stripes a name is cut. The first call stores the number.
--
-- KEYS[1] the number of stripes
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the number to store if none is stored yet
--
-- Returns {1, time, the number stored}
--         {-1, time}                    late: nothing was done

redis.call('SET', KEYS[1], ARGV[2], 'NX')
return {1, now, tonumber(redis.call('GET', KEYS[1])) or 0}
