-- Gives an owner's number back, takes its mark away if it waited, and notifies those that wait. A number
-- whose lease is over stays in quarantine. An owner is never used again, so this may run late and any
-- number of times. It runs after failed.lua, numbers.lua and turns.lua, in one script with them.
--
-- KEYS[1] who has which number: see numbers.lua
-- KEYS[2], KEYS[3] those that wait: see turns.lua. While the slot is on the move only KEYS[1] is sent,
--         since a call with several keys would get TRYAGAIN. A mark that stays then counts for no longer
--         than its own time
-- ARGV[1] not-after: ignored
-- ARGV[2] the owner
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
-- ARGV[5] 1: the holder has lost it, and the number is to be in quarantine from now on
--
-- Returns {1, time}  its lease was not over, and it has no number now
--         {0, time}  it had no number, or its lease was over; at most its mark was taken away

local ms = math.floor(now / 1000)
local has = redis.call('ZSCORE', KEYS[1], ARGV[2])
local lives, freed = 0, false
if has then
  local number, quarantine = parsed(has)
  local back = tonumber(redis.call('ZSCORE', KEYS[1], text(number)) or 0)
  if back - quarantine > ms then
    lives = 1
  end
  if quarantine == 0 or lives == 1 and ARGV[5] ~= '1' then
    freed = drop(number, ARGV[2]) > 0
  elseif lives == 1 then
    redis.call('ZREM', KEYS[1], '') -- no member is empty; after a first write Redis allows ZADD when memory is short
    redis.call('ZADD', KEYS[1], 'XX', text(ms + quarantine), text(number))
  end
end
local marked = #KEYS > 1 and unmark(ARGV[2])
if freed or marked then
  publish(ARGV[3], ARGV[4], '0')
end
return {lives, now}
