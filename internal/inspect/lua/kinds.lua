-- What is to be said of each kind: a function that returns the reply of inspect.lua. It runs after beside.lua.

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
  if holders[1] and beside('GET', ARGV[26]) == holders[1] then
    more.state = 'asked'
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
  local n = beside('ZCOUNT', ARGV[19], '-inf', '(0')
  n = n and n - beside('ZCOUNT', ARGV[19], '0', ms) or ((beside('ZCARD', ARGV[19]) or 1) - 1) / 2
  if n == 0 then
    return nil
  end
  local queue = waiting({}, ARGV[20], ARGV[21], function() return '' end)
  return told('slots', beside('PTTL', ARGV[19]) or -1, counting(ARGV[21]), string.format('%.0f', all - n), n, holders,
    cursor, {all = string.format('%.0f', all), queue = queue, token = ''})
end

-- ranges returns ascending numbers in short: "0-3 7".
local function ranges(numbers)
  local parts, i = {}, 1
  while i <= #numbers do
    local last = i
    while numbers[last + 1] == numbers[last] + 1 do
      last = last + 1
    end
    parts[#parts + 1] = last > i and numbers[i] .. '-' .. numbers[last] or tostring(numbers[i])
    i = last + 1
  end
  return table.concat(parts, ' ')
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
  local entries, has, who, taken = beside('HGETALL', ARGV[25]) or {}, {}, {}, 0
  for i = 1, #entries, 2 do
    local shard, owner = string.match(entries[i], '^%d+$'), string.match(entries[i + 1], '^%d+ (.+)$')
    if shard and owner then
      local ends = beside('ZSCORE', ARGV[24], owner)
      if ends and tonumber(ends) > tonumber(ms) then
        has[owner] = has[owner] or {}
        table.insert(has[owner], tonumber(shard))
        taken = taken + 1
      end
    elseif owner then
      local n, said = string.match(entries[i + 1], '^%d+ %d+ (%d+) (.*)$')
      who[entries[i]] = n and string.sub(said, 1, tonumber(n))
    end
  end
  local holders = {}
  for i = 1, #page, 2 do
    local left = tonumber(page[i + 1]) - tonumber(ms)
    if left > 0 then
      local mine = has[page[i]] or {}
      table.sort(mine)
      holders[#holders + 1] = page[i]
      holders[#holders + 1] = #mine .. ' ' .. ranges(mine) .. ',' .. (who[page[i]] or '')
      holders[#holders + 1] = left
    end
  end
  local cursor = #page == 2 * ARGV[9] and string.format('%.0f', from + ARGV[9]) or '0'
  return told('shards', beside('PTTL', ARGV[24]) or -1, -1, string.format('%.0f', size - taken), taken, holders, cursor,
    {all = size, token = ''})
end

-- limiter returns the reply for a limit, or nil if there is none. limiter/lua/state.lua has the layout.
local function limiter()
  local at, debt, count, period, burst =
    string.match(beside('GET', ARGV[22]) or '', '^(%d+) ([%d.]+) %d+ (%d+) (%d+) (%d+) %d+')
  if not burst then
    return nil
  end
  debt = math.max(debt - math.max(now - at, 0), 0)
  local left = math.floor(burst - debt * count / period + 0.001)
  return told('limiter', math.min(math.ceil(debt / 1000), 2 ^ 43), -1, string.format('%.0f', left), 0, {}, nil, {all = burst})
end

-- lasting returns how many ms are left of a permit's lease, which is over at the time ends; -1:
-- without end.
local function lasting(ends)
  local left = tonumber(ends) - tonumber(ms)
  return left > 1e12 and -1 or math.max(left, 0)
end

-- taken returns how many permits are taken, how many listed permits have a lease that is over, and
-- how long the last one stays taken. It returns nil if none is listed.
local function taken()
  local all = beside('ZCARD', ARGV[6]) or 0
  if all == 0 then
    return nil
  end
  local lasts = counting(ARGV[6])
  local over, last, left = lasts < 0 and 0 or all - lasts, beside('ZLAST', ARGV[6]) or {}, 0
  if over < all and last[2] then
    left = lasting(last[2])
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
