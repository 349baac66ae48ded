-- Breaks a generation, if it is open, and tells how it stands. It names its generation, so it may
-- run any number of times, and late. It runs after generation.lua, in one script with it.
--
-- KEYS[1] the record, KEYS[2] the places: see generation.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the generation
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
--
-- Returns {1, time}  it had tripped
--         {2, time}  it has broken, now or before
--         {3, time}  how it ended is not known any more
local id = tonumber(ARGV[2])
local broke = sweep()
if how(id) == 0 then
  breaks()
  broke = true
end
if broke then
  publish(ARGV[3], ARGV[4], '0')
end
return {how(id), now}
