-- The generations of a latch: from each time it is set to its end. Beside the
-- count, which is all that Redisson has, stands a record of the last hundred, by
-- which a waiter that was not told knows that its generation has ended, and how.
--
-- The record is the last key: a sorted set of "<state>:<number>:<end>" by the
-- number. Numbers grow. A state is o (open), z (ended at zero) or d (ended by
-- being deleted, or by running out). The end is when an open one runs out, in ms;
-- 0: never. Where Redisson ends a generation it stays open here until somebody
-- looks.
--
-- It finds: now; value and number, the count; text() and failed(). What follows it
-- finds last, the newest generation; one without a state if there is none.
local record = KEYS[#KEYS]
local ms = math.floor(now / 1000)
local day = 24 * 3600 * 1000

-- parse reads what ZRANGE and its like return of one generation.
local function parse(members)
  local state, id, ends = string.match(members[1] or '', '^(%a):(%d+):(%d+)$')
  return {member = members[1], state = state, id = tonumber(id or 0), ends = tonumber(ends or 0)}
end

-- All is read before anything is written.
local last = parse(redis.call('ZREVRANGE', record, 0, 0))
local life = redis.call('PTTL', record)

-- keep puts off the end of the record where less than half of its time is left.
local function keep(ends)
  local whole = day + math.max(ends - ms, 0)
  if life < whole / 2 then
    return failed(redis.pcall('PEXPIRE', record, text(whole)))
  end
end

-- replace has a generation stand in another state, or returns the error it failed
-- with.
local function replace(g, state)
  local member = state .. ':' .. text(g.id) .. ':' .. text(g.ends)
  local failure = failed(redis.pcall('ZADD', record, text(g.id), member))
  if not failure then
    failure = failed(redis.pcall('ZREM', record, g.member))
    if failure then
      redis.call('ZREM', record, member)
    end
  end
  return failure
end

-- ended returns how a generation ended of which only the end is known.
local function ended(g)
  if g.ends > 0 and ms >= g.ends then
    return 'd'
  end
  return 'z'
end

-- begin opens a generation that runs out at ends, and returns it, or the error it
-- failed with.
local function begin(ends)
  if last.state == 'o' then
    replace(last, ended(last))
  end
  local g = {state = 'o', id = math.max(last.id + 1, now), ends = ends}
  g.member = 'o:' .. text(g.id) .. ':' .. text(ends)
  local failure = failed(redis.pcall('ZADD', record, text(g.id), g.member))
  if failure then
    return g, failure
  end
  failure = keep(ends)
  if failure then
    redis.call('ZREM', record, g.member) -- the record must never stand without an expiry
    return g, failure
  end
  redis.pcall('ZREMRANGEBYRANK', record, 0, -101)
  return g
end

