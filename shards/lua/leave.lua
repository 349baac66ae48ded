-- Ends a membership: what the member has is free. A member is never used again, so this may run late and any
-- number of times. It runs after failed.lua and table.lua, in one script with them.
--
-- KEYS[1], KEYS[2] the members and the table: see table.lua. While the slot is on the move only KEYS[1] is
--         sent, since a call with several keys would get TRYAGAIN. What the table knows of the member then is
--         removed by the next member that looks at it
-- ARGV[1] not-after: ignored
-- ARGV[2] the member
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
--
-- Returns {1, time}  its lease was not over, and it is no member now
--         {0, time}  it was none, or its lease was over

local ends = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[2]) or 0)
local gone, rev = redis.call('ZREM', KEYS[1], ARGV[2]), '0'
if #KEYS > 1 then
  if redis.call('ZCARD', KEYS[1]) == 0 then
    redis.call('DEL', KEYS[2])
  elseif redis.call('HDEL', KEYS[2], ARGV[2]) + gone > 0 then
    rev = turn()
  end
end
if gone > 0 then
  publish(ARGV[3], ARGV[4], rev)
end
return {ends > ms and 1 or 0, now}
