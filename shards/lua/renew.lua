-- Renews the lease of a member, and with it all its shards, or the table. It never shortens either, and never makes
-- one. It runs after failed.lua and table.lua, in one script with them.
--
-- KEYS[1] the members: see table.lua
-- KEYS[2] the table, if that is to be kept
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the member
-- ARGV[3] the least time to live of the lease afterwards, in ms; 0: leave it as it is
-- ARGV[4] how long the table is kept at least, in ms
--
-- Returns {1, time, time to live in ms}  it is a member
--         {0, time}                      it is none, or its lease is over
--         {-1, time}                     late: nothing was done

local ends = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[2]) or 0)
if ends <= ms then
  return {0, now}
end
if ARGV[3] ~= '0' then
  -- PEXPIRE comes first: Redis allows it when memory is short, and after a first write it allows ZADD
  -- too. It runs even if it changes nothing: a WAIT counts only what its connection has written.
  ends = math.max(ends, ms + tonumber(ARGV[3]))
  local life = math.max(redis.call('PTTL', KEYS[1]), ends - ms)
  redis.call('PEXPIRE', KEYS[1], text(life))
  redis.call('ZADD', KEYS[1], 'XX', text(ends), ARGV[2])
end
if KEYS[2] and redis.call('PTTL', KEYS[2]) < ARGV[4] / 2 then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
return {1, now, ends - ms}
