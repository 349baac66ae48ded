-- Releases the lock, whatever the owner's count, or gives up its place in the
-- queue; if the lock is free then, hands it to the first who waits. An owner is
-- never used again, so this may run late and any number of times.
--
-- If anybody waits token.lua, queue.lua and handover.lua go on from here.
--
-- The waiter has the lock for as long as its place was kept, with the count 0. It is
-- told its token: if it hears that it may begin, and see to the whole lease later;
-- if not it finds out when it asks.
--
-- KEYS[1] the lock
-- KEYS[2] the last token given
-- KEYS[3], KEYS[4] the queue
-- KEYS[5] stands while the lock is left to those outside the queue
--         In a slot on the move, where a call with several keys would be told to
--         try again, the first alone: waiters poll.
-- ARGV[1] not-after, in microseconds of the server's clock, for ARGV[9] alone
-- ARGV[2] the owner
-- ARGV[3] the command that tells: PUBLISH or SPUBLISH
-- ARGV[4] the channel where it is told if it is handed to nobody
-- ARGV[5] what the waiters' channels begin with, and a channel on which each of their
--         Clients listens
-- ARGV[6] one release in how many is left to those outside the queue, such as Java,
--         if there are any; 0: none
-- ARGV[7] one more that gives up its place; '': nobody
-- ARGV[8] how long the token is kept, in ms; 0: for ever
-- ARGV[9] one that takes a place, before the lock is handed on, if this releases it;
--         '': nobody
-- ARGV[10] how long that place is kept, in ms
--
-- Returns {1, time}         released
--         {1, time, number} released, and the place of ARGV[9] has that number
--         {0, time}         the owner does not hold it
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- A queue that is broken must not keep the lock from being released, nor need one
-- that is empty be looked at again.
local waiting = KEYS[3] and redis.pcall('ZCARD', KEYS[3])
local queue = type(waiting) == 'number' and (waiting > 0 or ARGV[9] ~= '')
  and type(redis.pcall('ZCARD', KEYS[4])) == 'number'

-- Asked before, not after: in a slot that is on the move a key that is gone is
-- another server's to answer for.
local size = queue and redis.call('HLEN', KEYS[1]) or 0
local released = redis.call('HDEL', KEYS[1], ARGV[2])
if not queue then
  if released == 1 then
    redis.pcall(ARGV[3], ARGV[4], '0')
  end
  return {released, now}
end

