-- Who holds a read/write lock. It runs after left.lua.

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

