-- Grants the write side to a new owner. It runs after left.lua, holders.lua and marks.lua.
--
-- KEYS[1] the lock: a hash {mode, <owner>: reads, <owner>:write: writes} with an expiry
-- KEYS[2] the last token given
-- KEYS[3] the waiting readers, KEYS[4] the waiting writers, KEYS[5] all that wait
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the owner that asks
-- ARGV[3] the lease, in ms
-- ARGV[4] how long the token is kept, in ms; 0: for ever
-- ARGV[5] what the timeout keys begin with
-- ARGV[6] how long the owner has waited, in ms; -1: it only tries
-- ARGV[7] how long its mark counts, in ms; 0: it leaves none
--
-- Returns {1, time, time to live in ms, token}  granted, now or by an earlier sending
--         {0, time, ms}                         others hold it, or go first, for that long;
--                                               -1: without end
--         {-1, time}                            late: nothing was done

local writer = ARGV[2] .. ':write'
local mine = redis.call('HEXISTS', KEYS[1], writer) == 1
local ttl = redis.call('PTTL', KEYS[1])
local token, kept = tonumber(redis.call('GET', KEYS[2]) or 0), redis.call('PTTL', KEYS[2])

local marks = redis.call('EXISTS', KEYS[waiting]) == 1
if not mine then
  local ms, waited = math.floor(now / 1000), tonumber(ARGV[6])
  if marks then
    purge(ms)
  end
  local since, process = place(writers, ARGV[2], waited, ms)
  local wait
  if ttl ~= -2 then
    wait = ttl
    if redis.call('HGET', KEYS[1], 'mode') == 'read' then
      wait = others(ARGV[5], '')
      if not wait then
        redis.call('DEL', KEYS[1])
        ttl = -2
      end
    end
  end
  if not wait and marks then
    -- These go first: owners that came earlier, and readers that waited already when the last
    -- writer was let in.
    local first, counts = oldest(writers, process, ms)
    if first and first < since then
      wait = counts
    else
      first, counts = oldest(readers, process, ms)
      if first and (first < since or before(first, token, now)) then
        wait = counts
      end
    end
  end
  if wait then
    if waited >= 0 and tonumber(ARGV[7]) > 0 then
      mark(writers, ARGV[2], since, ms, tonumber(ARGV[7]))
    end
    return {0, now, wait}
  end
end

-- The token is written before the lock, so that no lock is left without one.
if not mine or token == 0 then
  token = math.max(token + 1, now)
  local text = string.format('%.0f', token)
  if kept == -1 or ARGV[4] == '0' then
    redis.call('SET', KEYS[2], text)
  else
    -- A token that is ahead of the clock, because the clock was set back, is kept for longer by as
    -- much as it is ahead: if it were forgotten sooner, a smaller one would follow.
    local ahead = math.ceil((token - now) / 1000)
    redis.call('SET', KEYS[2], text, 'PX', string.format('%.0f', ARGV[4] + ahead))
  end
end

if not mine then
  redis.call('HSET', KEYS[1], 'mode', 'write', writer, '1')
end
-- PEXPIRE runs even if it changes nothing. After a lost reply the call is sent again on a new
-- connection, and a WAIT there counts only what that connection has written.
ttl = math.max(ttl, tonumber(ARGV[3]))
local expiry = redis.pcall('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
if type(expiry) == 'table' then
  -- A lock must never be left without an expiry, whichever commands are refused.
  if not mine and type(redis.pcall('HDEL', KEYS[1], 'mode', writer)) == 'table' then
    redis.call('SET', KEYS[1], '', 'PX', 1)
  end
  expiry.err = expiry.err .. " ('PEXPIRE')"
  return expiry
end
if marks then
  unmark(ARGV[2])
end
return {1, now, ttl, token}
