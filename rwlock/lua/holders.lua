-- Who holds a read/write lock. The scripts that ask for that begin with this file.
--
-- A read hold lives as long as one of its timeout keys. A read hold whose keys have all run out is
-- a zombie: its process died or lost the hold, and its field is still there only because other
-- holders kept the hash alive.

-- left returns for how long a reader still holds the lock, in ms; -1: without end; -2: it is a
-- zombie. If that is not known, left returns nil and the error. In a slot on the move, the server
-- that loses the slot refuses a key that has gone. The server that gets the slot takes a single key
-- that has not come yet for missing, but refuses to say that of two keys at once. So no reader
-- counts as a zombie before two of its keys have been asked for in one command.
local function left(timeouts, holder, count)
  local most, key = -2, timeouts .. holder .. ':rwlock_timeout:'
  for i = 1, tonumber(count) or 0 do
    local ms = redis.pcall('PTTL', key .. i)
    if type(ms) ~= 'number' then
      return nil, ms
    end
    if ms == -1 then
      return -1
    end
    most = math.max(most, ms)
  end
  if most == -2 then
    local there = redis.pcall('EXISTS', key .. 1, key .. 2)
    if type(there) ~= 'number' then
      return nil, there
    end
  end
  return most
end

-- untold returns the error of a call that needs what left could not tell. In a slot on the move
-- that error says to try again.
local function untold(why)
  if string.find(why.err, 'non local key', 1, true) or string.find(why.err, 'undeclared keys', 1, true) then
    return {err = 'TRYAGAIN a read lease is on another server than its lock'}
  end
  return why
end

-- others returns for how long, in ms, anyone but the field but holds the lock ('': anyone at all),
-- or nil if nobody does; -1: without end. It drops the zombies that it meets. It looks at about
-- 1024 fields, and returns 1 if there are more.
local function others(timeouts, but)
  local known = redis.call('HEXISTS', KEYS[1], 'mode') + redis.call('HEXISTS', KEYS[1], but)
  if redis.call('HLEN', KEYS[1]) == known then
    return nil
  end
  local cursor, seen = '0', 0
  repeat
    local page = redis.call('HSCAN', KEYS[1], cursor, 'COUNT', 64)
    local fields = page[2]
    cursor = page[1]
    for i = 1, #fields, 2 do
      local field = fields[i]
      if field ~= 'mode' and field ~= but then
        if string.sub(field, -6) == ':write' then
          return redis.call('PTTL', KEYS[1])
        end
        local ms = left(timeouts, field, fields[i + 1])
        if not ms then
          return 1 -- not known to be dead
        elseif ms ~= -2 then
          return ms
        end
        redis.call('HDEL', KEYS[1], field)
      end
    end
    seen = seen + #fields -- fields, not pages: pages that earlier sweeps emptied are cheap
    if cursor ~= '0' and seen >= 1024 then
      return 1
    end
  until cursor == '0'
  return nil
end

