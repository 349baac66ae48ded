-- Writes the result of the work, if the owner still has the work, and wakes those who wait for it.
-- The owner is never used again, so this may run late and any number of times.
--
-- KEYS[1] the record: see ask.lua
-- KEYS[2] the last token given, if the record lasts at least as long: the record has the token too.
--         While the slot is on the move only KEYS[1] is sent
-- ARGV[1] not-after: ignored
-- ARGV[2] the owner
-- ARGV[3] the token that it was granted with
-- ARGV[4] result, or error if the work has failed
-- ARGV[5] the result, or the text of the error
-- ARGV[6] how long it is kept, in ms
-- ARGV[7] the greatest size of a result that the message carries, in bytes
-- ARGV[8] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[9] the channel
--
-- Returns {1, time}  written, now or by an earlier sending
--         {0, time}  the owner has not got the work
local found = redis.call('HMGET', KEYS[1], ARGV[2], 'token', 'by')
local mine = found[2] == ARGV[3]
local left = string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), 1))
if mine and found[3] == ARGV[2] and not found[1] then
  -- It changes nothing, but a WAIT that follows counts only what its connection has written.
  redis.call('PEXPIRE', KEYS[1], left)
  return {1, now}
elseif not found[1] then
  return {0, now}
elseif not mine then
  -- A request that came late has granted the work to this owner once more, and nobody does it.
  redis.call('DEL', KEYS[1])
  publish(ARGV[8], ARGV[9], '0')
  return {0, now}
end

-- PEXPIRE comes first, and changes nothing: Redis allows it when memory is short, and after a first
-- write it allows HSET too. Until the owner's field goes, a sending that failed in the middle is
-- done again from here.
redis.call('PEXPIRE', KEYS[1], left)
redis.call('HSET', KEYS[1], ARGV[4], ARGV[5], 'by', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('HDEL', KEYS[1], ARGV[2])
-- A token that is ahead of the clock, because the clock was set back, must outlast the record: see token.lua.
if KEYS[2] and tonumber(ARGV[3]) <= now then
  redis.pcall('DEL', KEYS[2])
end
local message = ARGV[3]
if #ARGV[5] <= tonumber(ARGV[7]) then
  message = message .. ' ' .. ARGV[4] .. ' ' .. ARGV[5]
end
publish(ARGV[8], ARGV[9], message)
return {1, now}
