-- Releases the lock, whatever the owner's count. If the owner does not hold it, this gives up the
-- owner's place in the queue. If the lock is free then, it is handed to the first owner in the
-- queue. An owner is never used again, so this may run late and any number of times. It runs after
-- token.lua and queue.lua, in one script with them.
--
-- The waiter to whom the lock is handed holds it, with the count 0, for as long as its place was
-- still to be kept. A message brings the waiter its token. A waiter that hears it may begin, and
-- asks for the whole lease later. A waiter that does not hear it finds out when it asks next.
--
-- KEYS[1] the lock
-- KEYS[2] the last token given
-- KEYS[3], KEYS[4] the queue: see queue.lua
-- KEYS[5] exists while the lock is left to those outside the queue
--         While the slot is on the move only KEYS[1] is sent, since a call with several keys
--         would get TRYAGAIN. Waiters then find the free lock by polling.
-- ARGV[1] not-after, in microseconds of the server's clock. It applies to ARGV[9] alone
-- ARGV[2] the owner
-- ARGV[3] the command that publishes: PUBLISH or SPUBLISH
-- ARGV[4] the channel of releases that hand the lock to no waiter
-- ARGV[5] what the channels of the waiting Clients begin with. It is a channel too, on which
--         every waiting Client listens, and nobody else
-- ARGV[6] n: one release in n is left to those outside the queue, such as Java, if any of them
--         listen; 0: none is
-- ARGV[7] another owner that gives up its place; '': none
-- ARGV[8] how long the token is kept, in ms; 0: for ever
-- ARGV[9] an owner that takes a place before the lock is handed on, if this call releases it;
--         '': none
-- ARGV[10] how long a place of this kind of lock is kept, in ms
--
-- Returns {1, time}            released
--         {1, time, number}    released, and the place of ARGV[9] has that number
--         {1, time, number, what} released. What is 1 if the lock was left to those outside the
--                              queue, and 2 if it was handed to another Client than the
--                              owner's. The number is 0 if no owner took a place
--         {0, time}            the owner does not hold it
--
-- Publishes on ARGV[5]:<Client>
--         <number> <token> <ms>  the lock is handed to that Client's owner with that number, which has
--                              the token, and holds the lock for so many ms
--         0                    the lock is left to those outside the queue: see openly
-- and on ARGV[4]
--         0                    the lock is free, and handed to nobody
--         00                   to those outside the queue: look again. Clients of Holdfast ignore it

local ms = math.floor(now / 1000)

-- A queue that cannot be read must not keep the lock from being released. An empty queue is looked
-- at again only if ARGV[9] is to join it.
local queue, head, left = KEYS[3] ~= nil, nil, nil
if queue then
  queue, head, left = pcall(first, ms)
end
if queue and not head then
  queue = ARGV[9] ~= '' and type(redis.pcall('ZCARD', KEYS[4])) == 'number'
end

-- PTTL comes before HDEL, not after it: in a slot on the move, a server does not answer for a key
-- that it no longer has. A lock has one holder, so it is free once that holder has gone.
local ttl = queue and redis.call('PTTL', KEYS[1]) or 0
local released = redis.call('HDEL', KEYS[1], ARGV[2])
local reply = {released, now}

-- Whether anyone but Clients of Holdfast listens for releases: nil if that is not known yet.
local others
-- Asks those outside the queue to look again. Redisson reads this as the number 0, as it reads any
-- release. Clients of Holdfast ignore it, so that they do not all ask for a lock that is not
-- theirs.
local again = '00'

-- Leaves the lock to those outside the queue for 3 ms, if this release is to do that, since they
-- come more slowly than those in the queue. Returns whether it did. The clock decides which
-- releases do it, so that nothing has to be counted. In the queue only the first waiter is notified: it
-- comes when the 3 ms are over.
local function openly()
  local every = tonumber(ARGV[6])
  if released == 0 or every == 0 or math.floor(now / 8) % every ~= 0 then
    return false
  end
  others = outsiders(ARGV[3], ARGV[4], ARGV[5])
  if not others or not redis.pcall('SET', KEYS[5], '', 'PX', '3').ok then
    return false
  end
  reply[3], reply[4] = reply[3] or 0, 1
  publish(ARGV[3], ARGV[4], again)
  if head then
    publish(ARGV[3], ARGV[5] .. ':' .. string.sub(head, 1, 36), '0')
  end
  return true
end

if not queue then
  if released == 1 and not (KEYS[5] and openly()) then
    publish(ARGV[3], ARGV[4], '0')
  end
  return reply
end

-- Hands the lock, if it is free, to the first owner in the queue. Returns whether it did.
local function hand_over()
  if released == 0 and ttl ~= -2 or not head or left <= 0 then
    return false
  end
  -- The token is 1000 behind the clock where it can be. That is as many as a waiter may reserve. If
  -- the waiter asks, to reserve some, it finds them between this token and the clock.
  local fenced, token = pcall(advance, 2, string.format('%.0f', now - 1000), ARGV[8], 1000)
  local handed, rest = fenced and redis.pcall('HSET', KEYS[1], head, '0'), string.format('%.0f', left)
  local expiry = type(handed) == 'number' and redis.pcall('PEXPIRE', KEYS[1], rest)
  if type(expiry) ~= 'number' then
    -- A lock must never be left without an expiry. Whoever may not do HDEL has not got this far, unless
    -- the lock was free already.
    if type(redis.pcall('HDEL', KEYS[1], head)) == 'table' and type(handed) == 'number' then
      redis.pcall('SET', KEYS[1], '', 'PX', 1)
    end
    return false
  end
  leave(head)
  if released == 1 and string.sub(head, 1, 36) ~= string.sub(ARGV[2], 1, 36) then
    reply[3], reply[4] = reply[3] or 0, 2
  end
  -- The message comes last, by pcall, so that the release never fails by it: a user who may not
  -- publish can still release, and waiters poll.
  publish(ARGV[3], ARGV[5] .. ':' .. string.sub(head, 1, 36),
    string.sub(head, 38) .. ' ' .. token .. ' ' .. rest)
  if ttl < 0 or ttl > tonumber(ARGV[10]) then
    if others == nil then
      others = outsiders(ARGV[3], ARGV[4], ARGV[5])
    end
    -- Those outside sleep for as long as the last holder might have kept the lock, and this waiter
    -- may have died. Once notified, they sleep for what is left of its place. If the last holder had
    -- the lock for no longer than that either, they need not be notified: each of them looks again by
    -- the time at which that hold would have ended.
    if others ~= false then
      publish(ARGV[3], ARGV[4], again)
    end
  end
  return true
end

if released == 1 and ARGV[9] ~= '' and now <= tonumber(ARGV[1]) then
  local number, stays = coming(now)
  local failed, new = join(ARGV[9], number, ms, tonumber(ARGV[10]), stays and head and left > 0)
  if not failed then
    -- ARGV[9] may have asked meanwhile, and so have had its place already.
    reply[3] = new == 1 and number or tonumber(redis.call('ZSCORE', KEYS[3], ARGV[9]))
  end
  if not head then
    head, left = first(ms)
  end
end
-- An owner that held the lock has no place: it lost that by the grant.
if released == 0 then
  leave(ARGV[2])
end
if ARGV[7] ~= '' then
  leave(ARGV[7])
end
if head and (released == 0 and head == ARGV[2] or head == ARGV[7]) then
  head, left = first(ms)
end
if not openly() and not hand_over() and released == 1 then
  publish(ARGV[3], ARGV[4], '0')
end
return reply
