-- Who holds a read/write lock. This stands before the scripts that ask.
--
-- A read hold lives as long as one of its timeout keys does. One whose keys have
-- all run out is a zombie: its process died or lost it, and its field is still
-- there only because others kept the hash alive.

-- left returns for how long a reader holds, in ms; -1: without end; -2: it is a
-- zombie.
local function left(timeouts, holder, count)
  local most = -2
  for i = 1, tonumber(count) or 0 do
    most = math.max(most, redis.call('PTTL', timeouts .. holder .. ':rwlock_timeout:' .. i))
  end
  return most
end

-- others returns for how long, in ms, somebody other than that field holds the
-- lock ('': anybody), or nil if nobody does. It drops the zombies that it meets, and looks at
-- so many fields at the most: it answers 1 where it has not seen all of them.
local function others(lock, timeouts, but)
  local known = redis.call('HEXISTS', lock, 'mode') + redis.call('HEXISTS', lock, but)
  if redis.call('HLEN', lock) == known then
    return nil
  end
  local cursor, seen = '0', 0
  repeat
    local page = redis.call('HSCAN', lock, cursor, 'COUNT', 64)
    local fields = page[2]
    cursor = page[1]
    for i = 1, #fields, 2 do
      local field = fields[i]
      if field ~= 'mode' and field ~= but then
        if string.sub(field, -6) == ':write' then
          return redis.call('PTTL', lock)
        end
        local ok, ms = pcall(left, timeouts, field, fields[i + 1])
        if not ok then
          return 1 -- its keys are elsewhere, in a slot on the move: not known to be dead
        elseif ms ~= -2 then
          return ms
        end
        redis.call('HDEL', lock, field)
      end
    end
    seen = seen + #fields -- not pages: those that earlier sweeps have emptied are cheap
    if cursor ~= '0' and seen >= 1024 then
      return 1
    end
  until cursor == '0'
  return nil
end

