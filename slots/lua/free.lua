-- Takes a number from its owner, or ends its quarantine, and notifies those that wait. It runs
-- after failed.lua and numbers.lua, in one script with them.
--
-- KEYS[1] who has which number: see numbers.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the number
-- ARGV[3] the owner that has it
-- ARGV[4] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[5] the channel
--
-- Returns {1, time}  that owner had it
--         {0, time}  it had not

local has = redis.call('ZSCORE', KEYS[1], ARGV[3])
if not has or parsed(has) ~= tonumber(ARGV[2]) then
  return {0, now}
end
drop(tonumber(ARGV[2]), ARGV[3])
publish(ARGV[4], ARGV[5], '0')
return {1, now}
