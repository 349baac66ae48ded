-- Returns whether anybody wants the lock from its holder: the holder was asked, or a waiter has a place
-- in the queue that is kept.
--
-- KEYS[1] the holder that is asked: see ask.lua
-- KEYS[2] until when each place is kept: KEYS[4] of queue.lua. While the slot is on the move only
--         KEYS[1] is sent, and no waiter is seen
-- ARGV[1] not-after: ignored
-- ARGV[2] the owner that holds the lock
--
-- Returns {1, time}   somebody does
--         {0, time}   nobody does

if redis.call('GET', KEYS[1]) == ARGV[2] then
  return {1, now}
end
local last = KEYS[2] and redis.call('ZRANGE', KEYS[2], '-1', '-1', 'WITHSCORES')[2]
return {last and tonumber(last) * 1000 > now and 1 or 0, now}
