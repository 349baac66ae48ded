-- Names a claimant as the newest that wants the lock, and makes the holder's Client look; or asks
-- for one that was granted the lock whether a newer one has come since.
--
-- KEYS[1] the claimants: a string "<came>:<claimant> ...", at most 64: who they are, and when each
--         came, in microseconds of the server's clock. Those behind a '-' in place of the ':' have
--         withdrawn, at that time
-- KEYS[2] the lock. While the slot is on the move only KEYS[1] is sent, since a call with several keys
--         would get TRYAGAIN. The holder's Client then finds the newest by polling
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the claimant
-- ARGV[3] when it came, if it was granted the lock; 0: it comes now
-- ARGV[4] how long the claimants are kept, in ms
-- ARGV[5] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[6] what the channels of the Clients begin with: see release.lua
--
-- Returns {1, time, came}  no newer one has come
--         {0, time}        a newer one has come, or this one has withdrawn
--         {-1, time}       late: nothing was done
--
-- Publishes on ARGV[6]:<Client>, of the holder
--         0                look

local list, listed, came = redis.call('GET', KEYS[1]) or '', nil, tonumber(ARGV[3])
local newest, latest = 0, 0 -- of the others that have not withdrawn, and of all
for at, mark, claimant in string.gmatch(list, '(%d+)([:-])(%S+)') do
  at = tonumber(at)
  if claimant == ARGV[2] then
    listed, came = mark, at
  elseif mark == ':' then
    newest = math.max(newest, at)
  end
  latest = math.max(latest, at)
end
if listed == '-' or came ~= 0 and newest > came then
  return {0, now}
end
if came == 0 then
  came = math.max(now, latest + 1)
end

-- For 10 s a request of any claimant may come late, and must not look new. After that, claimants that came before one
-- that was granted the lock count no more: the granted one cannot withdraw.
local text, left = string.format('%.0f:', came) .. ARGV[2], 63
for at, mark, claimant in string.gmatch(list, '(%d+)([:-])(%S+)') do
  local counts = now - tonumber(at) < 10000000 or mark == ':' and ARGV[3] == '0'
  if counts and claimant ~= ARGV[2] and left > 0 then
    text, left = text .. ' ' .. at .. mark .. claimant, left - 1
  end
end
if text ~= list then
  redis.call('SET', KEYS[1], text, 'PX', ARGV[4])
end
local holder = not listed and KEYS[2] and redis.pcall('HGETALL', KEYS[2])[1]
if holder then
  publish(ARGV[5], ARGV[6] .. ':' .. string.sub(holder, 1, 36), '0')
end
return {1, now, came}
