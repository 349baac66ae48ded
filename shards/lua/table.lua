-- Who has which shard. This file comes before the scripts that look at that.
--
-- KEYS[1] the members: a sorted set {member: when its lease is over, in ms of the server's clock}
-- KEYS[2] the table: a hash with an expiry, of
--         size: how many shards there are
--         rev: greater after each change
--         <shard>: "<token> <member>": the token given last, and to whom. A shard is free if that member
--                  is not alive, or is ''
--         <member>: "<joined> <weight> <n> <identity><value>": the token of its membership, and what it says
--                   of itself; n is the length of the identity
--
-- A member is alive if its lease is not over, and the table knows it. Members are never used again.

local ms = math.floor(now / 1000)

-- turn makes rev greater, and returns it. It makes no table: that would have no expiry.
local function turn()
  local last = redis.call('HGET', KEYS[2], 'rev')
  if not last then
    return '0'
  end
  local rev = text(math.max(now, tonumber(last) + 1))
  redis.call('HSET', KEYS[2], 'rev', rev)
  return rev
end

-- living returns the members whose lease is not over, in a set.
local function living()
  local all, n = {}, 0
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(ms), '+inf')) do
    all[member], n = true, n + 1
  end
  return all, n
end

-- untilNext returns after how many ms the first lease of a member is over; 0: there is no member.
local function untilNext()
  local first = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(ms), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  return first and tonumber(first) - ms or 0
end

