-- What the end of a term or of a candidacy adds to release.lua: what the owner has said of itself is
-- taken back, and those who watch are notified. It runs after token.lua and queue.lua and before
-- release.lua, in one script with them, which has the contract of release.lua, and also:
--
-- KEYS[6] the record of the leader: see tell.lua
-- KEYS[7] what the candidates say of themselves: see candidate.lua
--         While the slot is on the move neither is sent. The record counts for nothing without the
--         lock, and both run out.
-- ARGV[11] the channel of changes
--
-- Nothing here must keep the lock from being released: so each command is a pcall.
if KEYS[7] then
  redis.pcall('HDEL', KEYS[7], ARGV[2])
  if redis.pcall('HGET', KEYS[6], 'owner') == ARGV[2] then
    redis.pcall('DEL', KEYS[6])
    publish(ARGV[3], ARGV[11], '0')
  end
end

