-- Leases permits to a new owner. On the way it takes back some permits whose leases are over.
--
-- KEYS[1] how many permits are free
-- KEYS[2] the permits that are taken: a sorted set of ids by the ms of their expiry
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the lease, in ms
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel
-- ARGV[5] and on: the ids of the permits, which only this owner uses
--
-- Returns {1, time, time to live in ms}  granted, now or by an earlier sending
--         {0, time, ms}                  too few are free. ms: until the next lease is over;
--                                        -1: none will be
--         {-1, time}                     late: nothing was done
--         the error NOPERMITS            there are fewer in all, or the semaphore was never set

local ms = math.floor(now / 1000)
local expiry = ms + tonumber(ARGV[2])
local ids, ends, mine, live = {}, {}, {}, 0
for i = 5, #ARGV do
  ids[#ids + 1] = ARGV[i]
  local score = redis.call('ZSCORE', KEYS[2], ARGV[i])
  if score then
    mine[#mine + 1] = ARGV[i]
    ends[#ids] = math.max(expiry, tonumber(score))
    if tonumber(score) > ms then
      live = live + 1
    end
  end
end
local value = redis.call('GET', KEYS[1])
if value and not string.match(value, '^%-?%d+$') then
  return redis.error_reply('WRONGTYPE the key holds no whole number')
end
if live == #ids then
  -- An earlier sending was granted. The lease begins anew, since the owner will count it from the
  -- sending that is answered; but it never becomes shorter, since this sending may be the earlier
  -- one, and the owner may have prolonged its lease. The expiry goes by way of one ms more, so that
  -- something is written within the same ms too. After a lost reply the call is sent again on a new
  -- connection, and a WAIT there counts only what that connection has written.
  redis.call('ZADD', KEYS[2], 'XX', text(ends[1] + 1), ids[1])
  local least = ends[1]
  for i = 1, #ids do -- some servers refuse unpack
    redis.call('ZADD', KEYS[2], 'XX', text(ends[i]), ids[i])
    least = math.min(least, ends[i])
  end
  return {1, now, least - ms}
end
local life = redis.call('PTTL', KEYS[1])
local free = tonumber(value or 0)
if value and #mine > 0 then
  -- An earlier sending has left these, and their lease is over. They are given back, since this
  -- call asks for them anew.
  redis.call('INCRBY', KEYS[1], #mine)
  for i = 1, #mine do
    local failure = failed('ZREM', redis.pcall('ZREM', KEYS[2], mine[i]))
    if failure then
      redis.call('INCRBY', KEYS[1], i - 1 - #mine)
      return failure
    end
  end
  free = free + #mine
end

-- Takes back a bounded number of the permits whose leases are over, but at least as many as are
-- asked for. The free count is raised before the ids go, and lowered again, by the same command, if
-- they do not go. So neither a failure nor short memory makes the two differ.
local over = value and redis.call('ZCOUNT', KEYS[2], '-inf', text(ms)) or 0
local back = math.min(over, math.max(1000, #ids))
if back > 0 then
  redis.call('INCRBY', KEYS[1], back)
  local failure = failed('ZREMRANGEBYRANK', redis.pcall('ZREMRANGEBYRANK', KEYS[2], 0, back - 1))
  if failure then
    redis.call('INCRBY', KEYS[1], -back)
    return failure
  end
  free = free + back
end

-- tell publishes to the waiters how many are free, if something came free and is left.
local function tell()
  if back > 0 and free > 0 then
    publish(ARGV[3], ARGV[4], text(free))
  end
end

if free < #ids then
  tell()
  if not value then
    return redis.error_reply('NOPERMITS never set')
  elseif free + redis.call('ZCARD', KEYS[2]) < #ids then
    return redis.error_reply('NOPERMITS more than there are in all')
  end
  local next = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
  if not next or tonumber(next) >= 922337203685477 then -- Redisson's "never"
    return {0, now, -1}
  end
  return {0, now, math.max(tonumber(next) - ms, 0)}
end

-- The free count is lowered first: if that is refused, nothing has been written, and if an id is
-- refused, it is raised again by the command that has just been allowed.
redis.call('DECRBY', KEYS[1], #ids)
for i = 1, #ids do
  local failure = failed('ZADD', redis.pcall('ZADD', KEYS[2], text(expiry), ids[i]))
  if failure then
    redis.call('DECRBY', KEYS[1], -#ids)
    for k = 1, i - 1 do
      redis.call('ZREM', KEYS[2], ids[k])
    end
    return failure
  end
end
if life > 0 then
  redis.pcall('PEXPIRE', KEYS[2], text(life)) -- as long as the semaphore itself
end
free = free - #ids
tell()
return {1, now, expiry - ms}
