-- Whether a reader holds a read/write lock. The scripts that ask for that begin with this file.
--
-- A read hold lives as long as one of its timeout keys. A read hold whose keys have all run out is
-- a zombie: its process died or lost the hold, and its field is still there only because other
-- holders kept the hash alive.

-- left returns for how long a reader still holds the lock, in ms; -1: without end; -2: it is a
-- zombie. If that is not known, left returns nil and the error. In a slot on the move, the server that
-- loses the slot refuses a key that has gone. The server that gets the slot takes a single key that
-- has not come yet for missing, but refuses to say that of two keys at once. So no reader counts as a
-- zombie before two of its keys, of which one is missing, have been asked for in one command.
--
-- A script that writes the keys wants all of them here: one that it made where the slot goes would stop
-- the move, since MIGRATE does not replace a key.
local function left(timeouts, holder, count, all)
  local most, missing, key = -2, nil, timeouts .. holder .. ':rwlock_timeout:'
  for i = 1, tonumber(count) or 0 do
    local ms = redis.pcall('PTTL', key .. i)
    if type(ms) ~= 'number' then
      return nil, ms
    end
    if ms == -1 then
      ms = math.huge
    end
    most, missing = math.max(most, ms), ms == -2 and i or missing
  end
  if most == -2 or all and missing then
    local last = missing or 1
    local there = redis.pcall('EXISTS', key .. last, key .. last + 1)
    if type(there) ~= 'number' then
      return nil, there
    end
  end
  return most < math.huge and most or -1
end

-- untold returns the error of a call that needs what left does not know. In a slot on the move that
-- error says to try again.
local function untold(why)
  if string.find(why.err, 'non local key', 1, true) or string.find(why.err, 'undeclared keys', 1, true) then
    return {err = 'TRYAGAIN a read lease is on another server than its lock'}
  end
  return why
end
