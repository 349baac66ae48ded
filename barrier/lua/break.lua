-- Breaks a generation, if it is open, and returns how it has ended. It names its generation, so it
-- may run any number of times, and late. It runs after generation.lua, in one script with it.
--
-- KEYS[1] the record, KEYS[2] the places: see generation.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the generation
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
-- ARGV[5] the owner of the party that asks; empty: it is none
--
-- Returns {1, time}  it had tripped
--         {2, time}  it has broken, now or before
--         {3, time}  how it ended is not known: the server has forgotten it, or never knew it
local id = tonumber(ARGV[2])
local entry = redis.call('HGET', KEYS[1], ARGV[5])
local broke = sweep()
if how(id) == 0 then
  breaks()
  broke = true
end
if broke then
  publish(ARGV[3], ARGV[4], '0')
end
return {how(id, entry), now}
