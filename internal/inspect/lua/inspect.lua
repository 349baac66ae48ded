-- Returns what stands at a name, and who holds it. It only reads.
--
-- KEYS[1] the name
-- ARGV[1] not-after: ignored
--
-- ARGV[2] to ARGV[7] are keys that may stand beside the name; '' where there can be none. They are
-- not passed as KEYS. So the call goes on in a slot on the move, and for a user who has no rights
-- on them. What cannot be read is not known.
--
-- ARGV[2] the last token given
-- ARGV[3] lock: until when the places in its queue are kept
-- ARGV[4] read/write lock: until when the marks of its waiters count
-- ARGV[5] read/write lock: what the timeout keys of its readers begin with
-- ARGV[6] permits: those that are taken: a sorted set of ids by the ms of their expiry
-- ARGV[7] latch: its generations
-- ARGV[8] where to go on among the holders: the cursor in the last reply; '0' to begin
-- ARGV[9] about how many holders to look at, so that no call keeps the server busy for long
--
-- Returns {1, time, kind, ms, waiters, token, token's ms, value, taken, cursor,
--          holder, count, ms, holder, count, ms, ...}
--         kind: free, mutex, rwlock, permits, latch, count, unknown: a string
--         ms: a time to live; -1: without end; a holder's: '' if it is not known
--         waiters: -1: not known
--         token, value: '' if there is none
--         cursor: '0': there are no more holders
--         holder: a field of the lock, or the id of a permit

local ms = string.format('%.0f', math.floor(now / 1000))

local ask = {
  GET = function(key) return redis.pcall('GET', key) end,
  PTTL = function(key) return redis.pcall('PTTL', key) end,
  EXISTS = function(key, another) return redis.pcall('EXISTS', key, another) end,
  ZCARD = function(key) return redis.pcall('ZCARD', key) end,
  ZCOUNT = function(key, from, to) return redis.pcall('ZCOUNT', key, from, to) end,
  ZLAST = function(key) return redis.pcall('ZRANGE', key, -1, -1, 'WITHSCORES') end,
  ZSCAN = function(key, cursor, count) return redis.pcall('ZSCAN', key, cursor, 'COUNT', count) end,
}

-- beside asks for something of a key that may stand beside the name. It returns nil if there can be
-- no such key, or it cannot be read.
local function beside(what, key, ...)
  if key == '' then
    return nil
  end
  local answer = ask[what](key, ...)
  if type(answer) == 'table' and answer.err then
    return nil
  end
  return answer
end

local function counting(key)
  return beside('ZCOUNT', key, '(' .. ms, '+inf') or -1
end

local function told(kind, ttl, waiters, value, taken, holders, cursor)
  local token, kept = '', -2
  if #holders > 0 then
    token = beside('GET', ARGV[2]) or ''
    kept = beside('PTTL', ARGV[2]) or -2
  end
  local reply = {1, now, kind, ttl, waiters, token, kept, value, taken, cursor or '0'}
  for _, part in ipairs(holders) do
    reply[#reply + 1] = part
  end
  return reply
end

-- lasting returns for how many ms a permit is still taken whose lease is over at ends; -1: without
-- end.
local function lasting(ends)
  local left = tonumber(ends) - tonumber(ms)
  return left > 1e12 and -1 or left
end

-- taken returns how many permits are taken, how many of those still listed have a lease that is
-- over, and for how long the last one is taken. It returns nil if none is listed.
local function taken()
  local all = beside('ZCARD', ARGV[6]) or 0
  if all == 0 then
    return nil
  end
  local over = all - counting(ARGV[6])
  local left = 0
  if over < all then
    left = lasting(beside('ZLAST', ARGV[6])[2])
  end
  return all - over, over, left
end

-- permits returns the reply for permits, with some of those that are taken.
local function permits(value, n, left)
  local page = beside('ZSCAN', ARGV[6], ARGV[8], ARGV[9]) or {'0', {}}
  local holders, found = {}, page[2]
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) > tonumber(ms) then
      holders[#holders + 1] = found[i]
      holders[#holders + 1] = '1'
      holders[#holders + 1] = lasting(found[i + 1])
    end
  end
  return told('permits', left, -1, value, n, holders, page[1])
end

local kind = redis.call('TYPE', KEYS[1])
if type(kind) == 'table' then
  kind = kind.ok
end
local ttl = redis.call('PTTL', KEYS[1])

if kind == 'none' then
  local n, _, left = taken()
  if n and n > 0 then
    return permits('', n, left)
  end
  local lock, rw = counting(ARGV[3]), counting(ARGV[4])
  if lock > 0 then
    return told('mutex', 0, lock, '', 0, {})
  elseif rw > 0 then
    return told('rwlock', 0, rw, '', 0, {})
  end
  return told('free', 0, -1, '', 0, {})
end

if kind == 'string' then
  local value = ''
  if redis.call('STRLEN', KEYS[1]) <= 20 then
    value = redis.call('GET', KEYS[1]) or ''
  end
  if not string.match(value, '^%-?%d+$') then
    return told('unknown', ttl, -1, '', 0, {})
  end
  local n, over, left = taken()
  if n then
    return permits(string.format('%.0f', tonumber(value) + over), n, left)
  end
  if (beside('ZCARD', ARGV[7]) or 0) > 0 then
    return told('latch', ttl, -1, value, 0, {})
  end
  return told('count', ttl, -1, value, 0, {})
end

if kind ~= 'hash' then
  return told('unknown', ttl, -1, '', 0, {})
end

local mode = redis.call('HGET', KEYS[1], 'mode')
if mode ~= 'read' and mode ~= 'write' then
  mode = nil
end

-- ours returns whether all the fields are those of a lock.
local function ours(fields)
  for i = 1, #fields, 2 do
    local field, count = fields[i], fields[i + 1]
    if mode and string.sub(field, -6) == ':write' then
      field = string.sub(field, 1, -7)
    end
    local holder = #field <= 64 and #count <= 15 and string.match(count, '^%d+$') and
      string.match(field, '^%x+%-%x+%-%x+%-%x+%-%x+:%-?%d+$')
    if not holder and not (mode and field == 'mode') then
      return false
    end
  end
  return true
end

-- Look at a few fields first: another program's hash may be large.
local size = redis.call('HLEN', KEYS[1])
if mode then
  size = size - 1
end
local page, fields
if size > 0 and (ARGV[8] ~= '0' or ours(redis.call('HSCAN', KEYS[1], '0', 'COUNT', 16)[2])) then
  page = redis.call('HSCAN', KEYS[1], ARGV[8], 'COUNT', ARGV[9])
  fields = page[2]
end
if not fields or not ours(fields) then
  return told('unknown', ttl, -1, '', 0, {})
end

-- left returns for how long a reader still holds the lock, in ms; '' if that is not known; -2: its
-- keys have all run out, and only its field is left. A server that is to get the slot takes a
-- single key that has not come yet for missing, but refuses to say that of two keys at once.
local function left(holder, count)
  if ARGV[5] == '' then
    return ''
  end
  local most, key = -2, ARGV[5] .. holder .. ':rwlock_timeout:'
  for i = 1, math.min(tonumber(count), 1024) do
    local lasts = beside('PTTL', key .. i)
    if not lasts then
      return ''
    end
    most = math.max(most, lasts)
  end
  if most == -2 and not beside('EXISTS', key .. 1, key .. 2) then
    return ''
  end
  return most
end

local holders = {}
for i = 1, #fields, 2 do
  local lasts = ttl
  if fields[i] == 'mode' then
    lasts = -2
  elseif mode and string.sub(fields[i], -6) ~= ':write' then
    lasts = left(fields[i], fields[i + 1])
  end
  if lasts ~= -2 then
    holders[#holders + 1] = fields[i]
    holders[#holders + 1] = fields[i + 1]
    holders[#holders + 1] = lasts
  end
end
if mode then
  return told('rwlock', ttl, counting(ARGV[4]), '', 0, holders, page[1])
end
return told('mutex', ttl, counting(ARGV[3]), '', 0, holders, page[1])
