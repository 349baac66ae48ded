-- Makes the Client of a former holder look whether it still has the lock. It changes nothing.
--
-- KEYS[1] the lock
-- ARGV[1] not-after: ignored
-- ARGV[2] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[3] the channel of that Client: see release.lua
--
-- Returns {1, time}
--
-- Publishes on ARGV[3]
--         0    look

publish(ARGV[2], ARGV[3], '0')
return {1, now}
