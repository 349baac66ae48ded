-- Says who has a shard, or all of them. It runs after failed.lua and table.lua, in one script with them.
--
-- KEYS[1], KEYS[2] the members and the table: see table.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the shard; -1: all
-- ARGV[3] rev, and ARGV[4] how many members are alive, as the caller knows them: then it need not hear of them again
--
-- Returns {1, time, rev, alive, ms, size, n, said, left, ..., shard, token, i, ...}
--         rev, size: 0: there is no table. ms: when the first lease of a member is over; 0: there is none
--         n: how many members follow; -1: all is as the caller knows it. said: what a member says of itself: see
--         table.lua. left: for how many ms its lease lasts
--         shard, token, i: a shard that somebody has, its token, and which of those members has it, from 1

local members, alive = living()
local rev, size = redis.call('HGET', KEYS[2], 'rev') or '0', redis.call('HGET', KEYS[2], 'size') or '0'
local reply = {1, now, tonumber(rev), alive, untilNext(), tonumber(size), 0}
if rev == ARGV[3] and alive == tonumber(ARGV[4]) then
  reply[7] = -1
  return reply
end

local shards, known, at = {}, 0, {}
-- note adds a shard, and its member if that is not there yet. A member that the table does not know is not alive.
local function note(shard, value)
  local token, member = string.match(value, '^(%d+) (.*)$')
  if not members[member] then
    return
  end
  local said = redis.call('HGET', KEYS[2], member)
  if not at[member] and said then
    known = known + 1
    at[member] = known
    reply[#reply + 1] = said
    reply[#reply + 1] = tonumber(redis.call('ZSCORE', KEYS[1], member)) - ms
  end
  if said then
    shards[#shards + 1] = {shard, token, at[member]}
  end
end

if ARGV[2] ~= '-1' then
  local value = redis.call('HGET', KEYS[2], ARGV[2])
  if value then
    note(tonumber(ARGV[2]), value)
  end
else
  local entries = redis.call('HGETALL', KEYS[2])
  for i = 1, #entries, 2 do
    if string.match(entries[i], '^%d+$') then
      note(tonumber(entries[i]), entries[i + 1])
    end
  end
end
reply[7] = known
for _, shard in ipairs(shards) do
  reply[#reply + 1] = shard[1]
  reply[#reply + 1] = tonumber(shard[2])
  reply[#reply + 1] = shard[3]
end
return reply
