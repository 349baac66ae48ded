-- Returns what is stored at a name, and who holds it. It only reads. It runs after beside.lua and kinds.lua, in one
-- script with them.
--
-- KEYS[1] the name
-- ARGV[1] not-after: ignored
--
-- ARGV[2] to ARGV[7] and ARGV[10] to ARGV[26] are keys that may stand beside the name; '' where there
-- can be none. They are not passed as KEYS. So the call goes on in a slot on the move, and for a user
-- who has no rights on them. What cannot be read is not known.
--
-- ARGV[2] the last token given
-- ARGV[3] lock: until when the places in its queue are kept
-- ARGV[4] read/write lock: until when the marks of its waiters count
-- ARGV[5] read/write lock: what the timeout keys of its readers begin with
-- ARGV[6] permits: those that are taken: a sorted set of ids by the ms of their expiry
-- ARGV[7] latch: its generations
-- ARGV[8] where to go on among the holders: the cursor in the last reply; '0' to begin
-- ARGV[9] about how many holders to look at, so that no call keeps the server busy for long; of
--         waiters, no more than a hundred
-- ARGV[10] lock: its queue
-- ARGV[11], ARGV[12] read/write lock: the readers and the writers that wait, by ms
-- ARGV[13], ARGV[14] leader: the record, and what the candidates say of themselves
-- ARGV[15] once: the record
-- ARGV[16], ARGV[17] barrier: the record, and the places of the parties
-- ARGV[18] semaphore: how many permits there are in all
-- ARGV[19] slots: who has which number: see slots/lua/numbers.lua
-- ARGV[20], ARGV[21] slots: those that wait, and until when their marks count
-- ARGV[22] limit: what was taken
-- ARGV[23] the pause of the name: see internal/pause/lua/begin.lua
-- ARGV[24], ARGV[25] shards: the members, and who has which: see shards/lua/table.lua
-- ARGV[26] lock: the holder that is asked: see internal/lockhash/lua/ask.lua
--
-- Returns {1, time, kind, ms, waiters, token, token's ms, value, taken, cursor, all, state, who, n, pause,
--          holder, count, ms, holder, count, ms, ...
--          waiter, number, text, waiter, number, text, ...}
--         kind: free, mutex, rwlock, leader, once, barrier, slots, shards, limiter, permits, semaphore, latch, count,
--               unknown: a string
--         ms: a time to live; -1: without end; a holder's: '' if it is not known
--         waiters: -1: not known
--         token, value: '' if there is none
--         cursor: '0': there are no more holders
--         all: how many permits, slots, shards or parties there are in all, or the burst of a limit; '': not known
--         state: of a once or a barrier: working, done, failed; open, tripped, broken; of a lock whose
--                holder is asked for it: asked; else ''
--         who: what the leader says of itself; else ''
--         n: how many holders follow
--         pause: the lines of a pause; else ''
--         holder: a field of the lock, or the id of a permit
--         count: of a member "<how many shards it has> <which>,<its identity>"; of a slot its number, and " over" behind it if its lease is over and it is in quarantine
--         waiter: an owner. number: in the queue; since when it waits, in ms, for a read/write lock;
--                 how many were still to come after it, for a barrier. text: what a candidate says of
--                 itself; w: a writer

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
  local places, marks = counting(ARGV[3]), counting(ARGV[4])
  if places > 0 then
    return lock(0, places, {})
  elseif marks > 0 then
    return readwrite(0, marks, {})
  end
  return once() or barrier() or slots() or shards() or limiter() or told('free', 0, -1, '', 0, {})
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
  local all = beside('HGET', ARGV[18], 'all')
  if all then
    return told('semaphore', ttl, -1, value, 0, {}, nil, {all = all})
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
  return readwrite(ttl, counting(ARGV[4]), holders, page[1])
end
return lock(ttl, counting(ARGV[3]), holders, page[1])
