-- Who is to have how many shards, and so which a member is to take and to give up. It runs after table.lua, in one
-- script with it, and changes nothing but what the table knows of members that are gone.
--
-- The share of a member is that of its weight, rounded down. The shards left over go one each to members that have one
-- of them already, then to the youngest members. So each member with too many gives up as few as can be, and the others
-- take as many. A member gives up first what it got last: after one member has left and another come, as in a rolling
-- deploy, that is what the first one had. For the same reason, of the members that have a shard left over, those that
-- had it before the youngest but one came are first: the others got it when somebody left. Free shards are for the
-- youngest first, beginning with those given last, so that they need not move again; but nobody waits for another to
-- take.

-- read returns the members that are alive, the youngest first, as {id, weight, joined, has, had}, also by their ids; and
-- the shards that are free, and those of one member, as {shard, token}. had: how many it had when the youngest but one came.
local function read(member)
  local alive, entries = living(), redis.call('HGETALL', KEYS[2])
  local members, by, given, size = {}, {}, {}, 0
  for i = 1, #entries, 2 do
    local field, value = entries[i], entries[i + 1]
    if field == 'size' then
      size = tonumber(value)
    elseif alive[field] then
      local joined, weight = string.match(value, '^(%d+) (%d+) ')
      by[field] = {id = field, weight = tonumber(weight), joined = tonumber(joined), has = 0, had = 0}
      members[#members + 1] = by[field]
    elseif string.find(field, ':', 1, true) then
      redis.call('HDEL', KEYS[2], field)
    elseif field ~= 'rev' then
      given[tonumber(field)] = value
    end
  end
  table.sort(members, function(a, b) return a.joined > b.joined end)
  local came = members[2] and members[2].joined or 0
  local free, has = {}, {}
  for shard = 0, size - 1 do
    local token, owner = string.match(given[shard] or '0 ', '^(%d+) (.*)$')
    token = tonumber(token)
    local m = by[owner]
    if not m then
      free[#free + 1] = {shard, token}
    else
      m.has = m.has + 1
      m.had = m.had + (token < came and 1 or 0)
    end
    if owner == member then
      has[#has + 1] = {shard, token}
    end
  end
  return members, by, size, free, has
end

-- share notes for each member how many shards it is to have.
local function share(members, size)
  local weights, left, rest = 0, size, {}
  for _, m in ipairs(members) do
    weights = weights + m.weight
  end
  for _, m in ipairs(members) do
    m.share = math.floor(size * m.weight / weights)
    left = left - m.share
    if size * m.weight % weights > 0 then
      rest[#rest + 1] = m
    end
    -- 2: it had too many before; 1: it has too many. By how many does not count: that changes while others still give up.
    m.first = m.had > m.share and 2 or m.has > m.share and 1 or 0
  end
  table.sort(rest, function(a, b)
    if a.first ~= b.first then
      return a.first > b.first
    end
    return a.joined > b.joined
  end)
  for i = 1, left do
    rest[i].share = rest[i].share + 1
  end
end

-- bounded returns how many of its shards a member is to give up, if most are on their way at a time.
local function bounded(members, me, free, most)
  local over = math.max(me.has - me.share, 0)
  if most == 0 then
    return over
  end
  local left = most - free
  for _, m in ipairs(members) do
    if m.joined < me.joined then
      left = left - math.max(m.has - m.share, 0)
    end
  end
  return math.min(over, math.max(left, 0))
end

-- newest is for sorting: what was given last comes first.
local function newest(a, b)
  if a[2] ~= b[2] then
    return a[2] > b[2]
  end
  return a[1] < b[1]
end

-- planned returns what a member has, what it is to take, and what to give up, if most shards are on their way at a time.
local function planned(member, most)
  local members, by, size, free, has = read(member)
  share(members, size)
  local me, plan = by[member], {has = has, takes = {}, gives = {}}
  table.sort(has, newest)
  for i = 1, bounded(members, me, #free, most) do
    plan.gives[i] = has[i][1]
  end
  table.sort(free, newest)
  local lacks, skip = math.min(math.max(me.share - me.has, 0), #free), 0
  for _, m in ipairs(members) do
    if m.joined > me.joined then
      skip = skip + math.max(m.share - m.has, 0)
    end
  end
  skip = math.min(skip, #free - lacks)
  for i = 1, lacks do
    plan.takes[i] = free[skip + i][1]
  end
  return plan
end

