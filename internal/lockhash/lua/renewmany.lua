-- Renews many locks, each for its owner and as renew.lua does. Whatever is stored at one of them,
-- the others are renewed.
--
-- KEYS    the locks
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the least time to live of each lock afterwards, in ms; 0: only look
-- ARGV[3] and on: the owner, for each lock
--
-- Returns {1, time, n, time to live in ms, ...}  for each lock KEYS[n], in order, whose time to
--                                                live is now another than ARGV[2].
--                                                -1: it has no expiry;
--                                                -2: the owner does not hold it;
--                                                -3: it cannot be read, renew.lua says why
--         {-1, time}                             late: nothing was done

-- A local name is found faster than a global one.
local redis, type, KEYS, ARGV = redis, type, KEYS, ARGV
local lease, reply = tonumber(ARGV[2]), {1, now}
local knowsGT = lease > 0 -- false once the server, which may be older than Redis 7.0, has refused it
for i = 1, #KEYS do
  local count, ttl = redis.pcall('HGET', KEYS[i], ARGV[i + 2]), -2
  if type(count) == 'string' then
    local longer = knowsGT and redis.pcall('PEXPIRE', KEYS[i], ARGV[2], 'GT')
    if longer == 1 then
      ttl = lease
    else
      knowsGT = longer == 0
      ttl = redis.call('PTTL', KEYS[i])
      -- Also where nothing changes: a server that takes no writes, such as a replica, says so here.
      if lease > 0 and (ttl < lease or not knowsGT) then
        ttl = math.max(ttl, lease)
        redis.call('PEXPIRE', KEYS[i], string.format('%.0f', ttl))
      end
    end
    if count == '0' and lease > 0 then
      redis.pcall('HSET', KEYS[i], ARGV[i + 2], '1') -- as renew.lua does
    end
  elseif count then
    ttl = -3
  end
  if ttl ~= lease then
    reply[#reply + 1] = i
    reply[#reply + 1] = ttl
  end
end
return reply
