-- Grants the read side to a new owner. It runs after left.lua and marks.lua, in one script with it.
--
-- KEYS[1] the lock: a hash {mode, <owner>: reads, <owner>:write: writes} with an expiry
-- KEYS[2] the last token given
-- KEYS[3] the waiting readers, KEYS[4] the waiting writers, KEYS[5] all that wait
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that asks
-- ARGV[3] the lease, in ms
-- ARGV[4] the owner of the write hold under which it asks; '': there is none
-- ARGV[5] what the timeout keys begin with
-- ARGV[6] how long the owner has waited, in ms; -1: it only tries
-- ARGV[7] how long its mark counts, in ms; 0: it leaves none
--
-- Returns {1, time, time to live in ms, token}  granted, now or by an earlier sending. The time
--                                               to live is the read hold's, the token the last
--                                               writer's, or 0
--         {0, time, ms}                         a writer holds it, or goes first, for that
--                                               long; -1: without end. Under a write hold: the
--                                               write hold is gone
--         {-1, time}                            late: nothing was done

local mine = redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1
local ttl = redis.call('PTTL', KEYS[1])
local token = tonumber(redis.call('GET', KEYS[2]) or 0)

local marks = redis.call('EXISTS', KEYS[waiting]) == 1
if not mine then
  local ms, waited = math.floor(now / 1000), tonumber(ARGV[6])
  local wait
  if ARGV[4] ~= '' then
    if redis.call('HEXISTS', KEYS[1], ARGV[4] .. ':write') == 0 then
      return {0, now, math.max(ttl, 1)}
    end
  elseif ttl ~= -2 and redis.call('HGET', KEYS[1], 'mode') ~= 'read' then
    wait = ttl
  elseif marks then
    purge(ms)
    local since, process = place(readers, ARGV[2], waited, ms)
    -- A writer that came earlier goes first, unless a writer was let in since this reader came.
    local first, counts = oldest(writers, process, ms)
    if first and first < since and not before(since, token, now) then
      wait = counts
    end
  end
  if wait then
    if waited >= 0 and tonumber(ARGV[7]) > 0 then
      mark(readers, ARGV[2], ms - waited, ms, tonumber(ARGV[7]))
    end
    return {0, now, wait}
  end
end

-- The timeout key comes first: it has its expiry from the start, and means nothing alone. If
-- the grant was made by an earlier sending, SET runs even if it changes nothing. After a lost reply
-- the call is sent again on a new connection, and a WAIT there counts only what that connection has
-- written.
local lease = tonumber(ARGV[3])
local timeout = ARGV[5] .. ARGV[2] .. ':rwlock_timeout:1'
local lasts = redis.call('PTTL', timeout)
if mine and lasts == -2 then
  local _, why = left(ARGV[5], ARGV[2], 1)
  if why then
    return untold(why) -- its key has not come to this server yet
  end
end
if mine or lasts < lease then
  lasts = math.max(lasts, lease)
  redis.call('SET', timeout, '1', 'PX', string.format('%.0f', lasts))
end
if not mine then
  if ttl == -2 then
    redis.call('HSET', KEYS[1], 'mode', 'read', ARGV[2], '1')
  else
    redis.call('HSET', KEYS[1], ARGV[2], '1')
  end
end
-- A lock without an expiry is given none.
if ttl ~= -1 and ttl < lease then
  local expiry = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
  if type(expiry) == 'table' then
    -- A lock must never be left without an expiry, whichever commands are refused.
    if ttl == -2 and type(redis.pcall('HDEL', KEYS[1], 'mode', ARGV[2])) == 'table' then
      redis.call('SET', KEYS[1], '', 'PX', 1)
    elseif ttl ~= -2 and not mine then
      redis.call('HDEL', KEYS[1], ARGV[2])
    end
    expiry.err = expiry.err .. " ('PEXPIRE')"
    return expiry
  end
end
if marks then
  unmark(ARGV[2])
end
return {1, now, lasts, token}
