-- Removes what a Client says of itself: it closes. It is right at any time.
--
-- KEYS[1] what the Client says: see present.lua
-- ARGV[1] not-after: ignored
--
-- Returns {1, time}
redis.call('DEL', KEYS[1])
return {1, now}
