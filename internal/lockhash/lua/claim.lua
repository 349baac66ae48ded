-- Names a claimant as the newest that wants the lock, and has the holder's Client look; or asks
-- whether a newer one has come since.
--
-- KEYS[1] the claimants: a string "<number> <claimant> <claimant>...", the newest first, and at most 8
--         of them. The number says when the newest came, in microseconds of the server's clock. A
--         claimant behind a '-' has withdrawn: it is listed for its requests that come late
-- KEYS[2] the lock. While the slot is on the move only KEYS[1] is sent, since a call with several keys
--         would get TRYAGAIN. The holder's Client then finds the newest by polling
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the claimant
-- ARGV[3] when it came, if it was named before; 0: it comes now
-- ARGV[4] how long the claimants are kept, in ms
-- ARGV[5] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[6] what the channels of the Clients begin with: see release.lua
--
-- Returns {1, time, number}  no newer one has come; the claimant came then
--         {0, time}          a newer one has come, or this one has withdrawn
--         {-1, time}         late: nothing was done
--
-- Publishes on ARGV[6]:<Client>, of the holder
--         0                  look

local number, list = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)(.*)$')
number, list = tonumber(number or 0), list or ''
local came, newer, kept, left = tonumber(ARGV[3]), false, '', 7
for withdrawn, claimant in string.gmatch(list, ' (%-?)(%S+)') do
  if claimant == ARGV[2] then
    if newer or withdrawn ~= '' then
      return {0, now}
    end
    return {1, now, came == 0 and number or came}
  end
  newer = newer or withdrawn == ''
  if left > 0 then
    kept, left = kept .. ' ' .. withdrawn .. claimant, left - 1
  end
end
if came == 0 then
  came = math.max(now, number + 1)
elseif newer and number > came then
  return {0, now}
end

redis.call('SET', KEYS[1], string.format('%.0f', math.max(came, number)) .. ' ' .. ARGV[2] .. kept, 'PX', ARGV[4])
local holder = KEYS[2] and redis.pcall('HGETALL', KEYS[2])[1]
if holder then
  publish(ARGV[5], ARGV[6] .. ':' .. string.sub(holder, 1, 36), '0')
end
return {1, now, came}
