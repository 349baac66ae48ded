-- Gives up shards of a member, removes members that are dead, and gives the member shards that are free, up to its
-- share. It says what the member has, and what it is to give up. It runs after failed.lua, token.lua, table.lua and
-- plan.lua, in one script with them.
--
-- KEYS[1], KEYS[2] the members and the table: see table.lua
-- KEYS[3] the last token given
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the member
-- ARGV[3] rev, and ARGV[4] how many members there are, as the member knows them: then it need not hear of them again
-- ARGV[5] how many shards may be on their way at a time; 0: any number
-- ARGV[6] how long the token is kept, in ms; 0: for ever
-- ARGV[7] how long the table is kept at least, in ms
-- ARGV[8] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[9] the channel
-- ARGV[10] and on: shards that it gives up, each with its token
--
-- Returns {1, time, rev, ms, members, -1}           as the member knows it
--         {1, time, rev, ms, members, n, shard, token, ..., asked, ...}
--                                                   the n shards that it has, then those that it is to give up. ms:
--                                                   when the first lease of a member is over
--         {0, time}                                 it is no member any more
--         {-1, time}                                late: nothing was done

local member, changed = ARGV[2], false
if tonumber(redis.call('ZSCORE', KEYS[1], member) or 0) <= ms or redis.call('HEXISTS', KEYS[2], member) == 0 then
  return {0, now}
end
if redis.call('PTTL', KEYS[2]) < ARGV[7] / 2 then
  redis.call('PEXPIRE', KEYS[2], ARGV[7])
end
if #ARGV > 9 then
  redis.call('ZREM', KEYS[1], '') -- no member is empty; after a first write Redis allows HSET when memory is short
  turn() -- first: whatever is refused after this, others see that a shard is free
end
for i = 10, #ARGV, 2 do
  if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[i + 1] .. ' ' .. member then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1] .. ' ')
    changed = true
  end
end
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', text(ms), 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[1], dead)
  redis.call('HDEL', KEYS[2], dead)
  changed = true
end
local rev, members = redis.call('HGET', KEYS[2], 'rev'), redis.call('ZCARD', KEYS[1])
if not changed and rev == ARGV[3] and members == tonumber(ARGV[4]) then
  return {1, now, tonumber(rev), untilNext(), members, -1}
end

local plan = planned(member, tonumber(ARGV[5]))
if #plan.takes > 0 then
  local token = tonumber((advance(3, clock, ARGV[6], 0)))
  redis.call('SET', KEYS[3], text(token + #plan.takes - 1), 'XX', 'KEEPTTL')
  for i, shard in ipairs(plan.takes) do
    redis.call('HSET', KEYS[2], text(shard), text(token + i - 1) .. ' ' .. member)
    plan.has[#plan.has + 1] = {shard, token + i - 1}
  end
  changed = true
end
if changed then
  rev = turn()
  publish(ARGV[8], ARGV[9], rev)
end
local reply = {1, now, tonumber(rev), untilNext(), members, #plan.has}
for _, shard in ipairs(plan.has) do
  reply[#reply + 1] = shard[1]
  reply[#reply + 1] = shard[2]
end
for _, shard in ipairs(plan.gives) do
  reply[#reply + 1] = shard
end
return reply
