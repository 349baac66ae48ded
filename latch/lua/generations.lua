-- The generations of a latch. Each begins when the latch is set, and lasts to its end. Redisson has
-- only the count. Beside it Holdfast keeps a record of the last hundred generations. From the
-- record, a waiter that was not notified learns that its generation has ended, and how.
--
-- The record is the last of KEYS, KEYS[record]: a sorted set of "<state>:<number>:<end>" by the number. Numbers
-- grow. A state is o (open), z (ended at zero) or d (ended by being deleted, or by running out).
-- The end is when an open generation runs out, in ms; 0: never. A generation that Redisson has
-- ended stays open in the record until somebody looks.
--
-- This file uses now, and what number.lua gives: value and number are the count. The scripts after
-- it use last, the newest generation, which has no state if there is none.
local record = #KEYS
local ms = math.floor(now / 1000)
local day = 24 * 3600 * 1000

-- parse returns the generation that ZRANGE, or a command like it, has replied.
local function parse(members)
  local state, id, ends = string.match(members[1] or '', '^(%a):(%d+):(%d+)$')
  return {member = members[1], state = state, id = tonumber(id or 0), ends = tonumber(ends or 0)}
end

-- All reads come before the first write.
local last = parse(redis.call('ZREVRANGE', KEYS[record], 0, 0))
local life = redis.call('PTTL', KEYS[record])

-- keep puts off the expiry of the record, if less than half of its time is left.
local function keep(ends)
  local whole = day + math.max(ends - ms, 0)
  if life < whole / 2 then
    return failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[record], text(whole)))
  end
end

-- replace gives a generation another state. Returns the error if that fails.
local function replace(g, state)
  local member = state .. ':' .. text(g.id) .. ':' .. text(g.ends)
  local failure = failed('ZADD', redis.pcall('ZADD', KEYS[record], text(g.id), member))
  if not failure then
    failure = failed('ZREM', redis.pcall('ZREM', KEYS[record], g.member))
    if failure then
      redis.call('ZREM', KEYS[record], member)
    end
  end
  return failure
end

-- ended returns the state of a generation that has ended without a record of how: d if its end has
-- passed, else z.
local function ended(g)
  if g.ends > 0 and ms >= g.ends then
    return 'd'
  end
  return 'z'
end

-- begin opens a generation that runs out at the time ends, and returns it. If that fails it returns
-- the error too.
local function begin(ends)
  if last.state == 'o' then
    replace(last, ended(last))
  end
  local g = {state = 'o', id = math.max(last.id + 1, now), ends = ends}
  g.member = 'o:' .. text(g.id) .. ':' .. text(ends)
  local failure = failed('ZADD', redis.pcall('ZADD', KEYS[record], text(g.id), g.member))
  if failure then
    return g, failure
  end
  failure = keep(ends)
  if failure then
    -- The record must never be left without an expiry, whichever commands are refused.
    if type(redis.pcall('ZREM', KEYS[record], g.member)) == 'table' and life < 0 then
      redis.pcall('SET', KEYS[record], '', 'PX', 1)
    end
    return g, failure
  end
  redis.pcall('ZREMRANGEBYRANK', KEYS[record], 0, -101)
  return g
end

