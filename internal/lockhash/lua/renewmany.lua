-- Renews many locks, each for its holder and as renew.lua does: what stands at one
-- of them changes nothing for the others.
--
-- KEYS    the locks
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the least time to live that each lock is to have, in ms; 0: only look
-- ARGV[3] the Client whose holders they are
-- ARGV[4] and on: the number of each holder
--
-- Returns {1, time, n, time to live in ms, ...}  for each lock KEYS[n], in their order,
--                                                whose time to live is not ARGV[2] now;
--                                                -1: without end;
--                                                -2: the holder does not hold it;
--                                                -3: it cannot be looked at, renew.lua says why
--         {-1, time}                             late: nothing was done
local call, pcall, max = redis.call, redis.pcall, math.max
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
  return {-1, now}
end

local lease, client = tonumber(ARGV[2]), ARGV[3] .. ':'
local reply = {1, now}
for i, key in ipairs(KEYS) do
  local held, ttl = pcall('HEXISTS', key, client .. ARGV[i + 3]), -2
  if held == 1 then
    ttl = call('PTTL', key)
    if lease > 0 then
      ttl = max(ttl, lease)
      call('PEXPIRE', key, ttl == lease and ARGV[2] or string.format('%.0f', ttl))
    end
  elseif held ~= 0 then
    ttl = -3
  end
  if ttl ~= lease then
    reply[#reply + 1] = i
    reply[#reply + 1] = ttl
  end
end
return reply
