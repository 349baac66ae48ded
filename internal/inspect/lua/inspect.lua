-- Returns what stands at a name, and who holds it. It only reads.
--
-- KEYS[1] the name
-- ARGV[1] not-after: ignored
--
-- ARGV[2] to ARGV[7] and ARGV[10] to ARGV[25] are keys that may stand beside the name; '' where there
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
--         state: of a once or a barrier: working, done, failed; open, tripped, broken; else ''
--         who: what the leader says of itself; else ''
--         n: how many holders follow
--         pause: the lines of a pause; else ''
--         holder: a field of the lock, or the id of a permit
--         count: of a member how many shards it has; of a slot its number, and " over" behind it if its lease is over and it is in quarantine
--         waiter: an owner. number: in the queue; since when it waits, in ms, for a read/write lock;
--                 how many were still to come after it, for a barrier. text: what a candidate says of
--                 itself; w: a writer

local ms = string.format('%.0f', math.floor(now / 1000))

local ask = {
  GET = function(key) return redis.pcall('GET', key) end,
  PTTL = function(key) return redis.pcall('PTTL', key) end,
  EXISTS = function(key, another) return redis.pcall('EXISTS', key, another) end,
  HGET = function(key, field) return redis.pcall('HGET', key, field) end,
  HGETALL = function(key) return redis.pcall('HGETALL', key) end,
  HKEYS = function(key) return redis.pcall('HKEYS', key) end,
  HLEN = function(key) return redis.pcall('HLEN', key) end,
  ZCARD = function(key) return redis.pcall('ZCARD', key) end,
  ZCOUNT = function(key, from, to) return redis.pcall('ZCOUNT', key, from, to) end,
  ZSCORE = function(key, member) return redis.pcall('ZSCORE', key, member) end,
  ZFIRST = function(key) return redis.pcall('ZRANGE', key, 0, 99, 'WITHSCORES') end,
  ZRANGE = function(key, from, to) return redis.pcall('ZRANGE', key, from, to, 'WITHSCORES') end,
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

-- told returns the reply. more may have more of it: token and kept, all, state, who, and those that wait.
local function told(kind, ttl, waiters, value, taken, holders, cursor, more)
  more = more or {}
  local token, kept = more.token or '', more.token and -1 or -2
  if #holders > 0 and not more.token then
    token = beside('GET', ARGV[2]) or ''
    kept = beside('PTTL', ARGV[2]) or -2
  end
  local reply = {1, now, kind, ttl, waiters, token, kept, value, taken, cursor or '0',
    more.all or '', more.state or '', more.who or '', #holders / 3, beside('GET', ARGV[23]) or ''}
  for _, part in ipairs(holders) do
    reply[#reply + 1] = part
  end
  for _, part in ipairs(more.queue or {}) do
    reply[#reply + 1] = part
  end
  return reply
end

-- waiting adds those to queue that wait at key, and are heard of until a time at alive. text returns
-- the text of an owner.
local function waiting(queue, key, alive, text)
  if ARGV[8] ~= '0' then
    return queue
  end
  local found = beside('ZFIRST', key) or {}
  for i = 1, #found, 2 do
    local till = beside('ZSCORE', alive, found[i])
    if till and tonumber(till) > tonumber(ms) then
      queue[#queue + 1] = found[i]
      queue[#queue + 1] = found[i + 1]
      queue[#queue + 1] = text(found[i])
    end
  end
  return queue
end

-- candidates returns those in the queue of a lock, and whether it is that of an election.
local function candidates()
  local queue = waiting({}, ARGV[10], ARGV[3], function(owner)
    return beside('HGET', ARGV[14], owner) or ''
  end)
  return queue, #queue > 0 and (beside('HLEN', ARGV[14]) or 0) > 0
end

-- lock returns the reply for a Mutex or an election.
local function lock(ttl, n, holders, cursor)
  local queue, leader = candidates()
  local more = {queue = queue}
  local owner = holders[1] and beside('HGET', ARGV[13], 'owner')
  if owner and owner == holders[1] then
    leader = true
    more.token = beside('HGET', ARGV[13], 'since') or nil
    more.who = beside('HGET', ARGV[13], 'identity') or nil
  end
  return told(leader and 'leader' or 'mutex', ttl, n, '', 0, holders, cursor, more)
end

-- readwrite returns the reply for a read/write lock.
local function readwrite(ttl, n, holders, cursor)
  local queue = waiting({}, ARGV[12], ARGV[4], function() return 'w' end)
  waiting(queue, ARGV[11], ARGV[4], function() return '' end)
  return told('rwlock', ttl, n, '', 0, holders, cursor, {queue = queue})
end

-- once returns the reply for a key of a Once, or nil if there is none.
local function once()
  local fields = beside('HKEYS', ARGV[15]) or {}
  local ttl, state, owner = beside('PTTL', ARGV[15]), 'working', nil
  for _, field in ipairs(fields) do
    if field == 'by' then
      state = beside('HGET', ARGV[15], 'error') and 'failed' or 'done'
    elseif string.find(field, ':', 1, true) then
      owner = field
    end
  end
  if #fields == 0 or not ttl or state == 'working' and not owner then
    return nil
  end
  local holders = state == 'working' and {owner, '1', ttl} or {}
  return told('once', ttl, -1, '', 0, holders, nil,
    {state = state, token = #holders > 0 and beside('HGET', ARGV[15], 'token') or nil})
end

-- barrier returns the reply for a barrier, or nil if there is none.
local function barrier()
  local state = beside('HGET', ARGV[16], 'state')
  if not state then
    return nil
  end
  local ttl, queue = beside('PTTL', ARGV[16]) or -1, {}
  if state ~= 'open' then
    return told('barrier', ttl, 0, '', 0, {}, nil, {state = state})
  end
  local found, generation = beside('ZFIRST', ARGV[17]) or {}, beside('HGET', ARGV[16], 'generation')
  for i = 1, #found, 2 do
    local place = beside('HGET', ARGV[16], found[i])
    if place and tonumber(found[i + 1]) > tonumber(ms) and string.find(place, generation .. ' ', 1, true) == 1 then
      queue[#queue + 1] = found[i]
      queue[#queue + 1] = string.sub(place, #generation + 2)
      queue[#queue + 1] = ''
    end
  end
  local arrived = beside('HGET', ARGV[16], 'arrived') or '0'
  return told('barrier', ttl, tonumber(arrived), arrived, 0, {}, nil,
    {state = state, all = beside('HGET', ARGV[16], 'parties'), queue = queue})
end

-- slots returns the reply for slots, with some of the numbers that are taken, or nil if there are none. The
-- cursor is the rank of the owner to go on with.
local function slots()
  local size = beside('ZSCORE', ARGV[19], 'size')
  if not size then
    return nil
  end
  local from = tonumber(ARGV[8])
  local page, holders, owners = beside('ZRANGE', ARGV[19], from, from + ARGV[9] - 1) or {}, {}, 0
  for i = 1, #page, 2 do
    local whole = tonumber(page[i + 1]) + 9007199254740992
    local number = math.floor(whole / 137438953472)
    if tonumber(page[i + 1]) >= 0 then
      break
    end
    owners = owners + 1
    local back = tonumber(beside('ZSCORE', ARGV[19], string.format('%.0f', number)) or 0) - tonumber(ms)
    local left = back - (whole - number * 137438953472)
    if back > 0 then
      holders[#holders + 1] = page[i]
      holders[#holders + 1] = string.format('%.0f', number) .. (left > 0 and '' or ' over')
      holders[#holders + 1] = left > 0 and left or back
    end
  end
  local cursor = owners == tonumber(ARGV[9]) and string.format('%.0f', from + owners) or '0'
  local all = tonumber(size) - 4503599627370496
  local n = (beside('ZCOUNT', ARGV[19], '-inf', '(0') or 0) - (beside('ZCOUNT', ARGV[19], '0', ms) or 0)
  if n == 0 then
    return nil
  end
  local queue = waiting({}, ARGV[20], ARGV[21], function() return '' end)
  return told('slots', beside('PTTL', ARGV[19]) or -1, counting(ARGV[21]), string.format('%.0f', all - n), n, holders,
    cursor, {all = string.format('%.0f', all), queue = queue, token = ''})
end

-- shards returns the reply for shards, with some of their members, or nil if there is none. The cursor is the rank of
-- the member to go on with.
local function shards()
  local from = tonumber(ARGV[8])
  local page = beside('ZRANGE', ARGV[24], from, from + ARGV[9] - 1) or {}
  local size = beside('HGET', ARGV[25], 'size')
  if not size or #page == 0 then
    return nil
  end
  local entries, has, taken = beside('HGETALL', ARGV[25]) or {}, {}, 0
  for i = 1, #entries, 2 do
    local owner = string.match(entries[i], '^%d+$') and string.match(entries[i + 1], '^%d+ (.+)$')
    if owner then
      local ends = beside('ZSCORE', ARGV[24], owner)
      if ends and tonumber(ends) > tonumber(ms) then
        has[owner], taken = (has[owner] or 0) + 1, taken + 1
      end
    end
  end
  local holders = {}
  for i = 1, #page, 2 do
    local left = tonumber(page[i + 1]) - tonumber(ms)
    if left > 0 then
      holders[#holders + 1] = page[i]
      holders[#holders + 1] = string.format('%.0f', has[page[i]] or 0)
      holders[#holders + 1] = left
    end
  end
  local cursor = #page == 2 * ARGV[9] and string.format('%.0f', from + ARGV[9]) or '0'
  return told('shards', beside('PTTL', ARGV[24]) or -1, -1, string.format('%.0f', size - taken), taken, holders, cursor,
    {all = size, token = ''})
end

-- limiter returns the reply for a limit, or nil if there is none. limiter/lua/state.lua has the layout.
local function limiter()
  local seconds, micros, debt, count, period, burst =
    string.match(beside('GET', ARGV[22]) or '', '^(%d+) (%d+) ([%d.]+) %d+ (%d+) (%d+) (%d+) %d+')
  if not burst then
    return nil
  end
  debt = math.max(debt - math.max(now - seconds * 1000000 - micros, 0), 0)
  local left = math.floor(burst - debt * count / period + 0.001)
  return told('limiter', math.ceil(debt / 1000), -1, string.format('%.0f', left), 0, {}, nil, {all = burst})
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
