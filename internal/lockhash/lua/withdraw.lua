-- Notes that a claimant wants the lock no more.
--
-- KEYS[1] the claimants: KEYS[1] of claim.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the claimant
-- ARGV[3] how long the claimants are kept, in ms
--
-- Returns {1, time}   done
--         {0, time}   it is not listed, or has withdrawn before

local list = redis.call('GET', KEYS[1]) or ''
local at = string.find(list .. ' ', ' ' .. ARGV[2] .. ' ', 1, true)
if not at then
  return {0, now}
end
redis.call('SET', KEYS[1], string.sub(list, 1, at) .. '-' .. string.sub(list, at + 1), 'PX', ARGV[3])
return {1, now}
