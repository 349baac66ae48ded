-- Returns how many numbers are taken, and who has one of them. It runs after failed.lua and numbers.lua,
-- in one script with them.
--
-- KEYS[1] who has which number: see numbers.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] a number; -1: none
--
-- Returns {1, time, how many are taken or in quarantine, the owner that has the number; '': nobody}

local ms = math.floor(now / 1000)
local over = redis.call('ZCOUNT', KEYS[1], '0', text(ms))
local owner = ''
if tonumber(ARGV[2]) >= 0 and tonumber(redis.call('ZSCORE', KEYS[1], ARGV[2]) or 0) > ms then
  owner = ownerOf(tonumber(ARGV[2]))
end
return {1, now, taken() - over, owner}
