-- Returns the state of a party's generation, and breaks it if the place of a party is over. It runs
-- after generation.lua, in one script with it. It is right at any time.
--
-- KEYS[1] the record, KEYS[2] the places: see generation.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the generation
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
-- ARGV[5] the owner of the party
--
-- Returns {0, time, ms}  it is open. ms: until the next place is over, if nobody renews it; -1: not
--                        soon
--         {1, time}      it has tripped
--         {2, time}      it has broken
--         {3, time}      how it ended is not known: the server has forgotten it, or never knew it
local entry, next = redis.call('HGET', KEYS[1], ARGV[5]), nil
local some = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. text(ms), '+inf', 'WITHSCORES', 'LIMIT', 0, 20)
for i = #some, 2, -2 do
  if not string.find(some[i - 1], 'left:', 1, true) then
    next = tonumber(some[i])
  end
end
if sweep() then
  publish(ARGV[3], ARGV[4], '0')
end
local state = how(tonumber(ARGV[2]), entry)
if state ~= 0 then
  return {state, now}
end
keep()
return {0, now, next and math.min(next - ms, 1e12) or -1}
