-- What a candidate adds to enter.lua: its priority, what it says of itself, and whether it asks a
-- leader of lower priority to give way. It runs after token.lua and queue.lua and before enter.lua,
-- in one script with them, which has the contract of enter.lua, and also:
--
-- KEYS[6] the record of the leader: see tell.lua
-- KEYS[7] what the candidates say of themselves: a hash {owner: <priority> <identity>}
-- ARGV[10] is the command that publishes
-- The last four of ARGV, which enter.lua does not see:
--   the priority, from -100 to 100
--   the channel of changes
--   1: ask a leader of lower priority to give way; 0: do not
--   the candidate's identity
local identity = table.remove(ARGV)
local preempts = table.remove(ARGV) == '1'
local changes = table.remove(ARGV)
local priority = tonumber(table.remove(ARGV))

-- Returns the number for a candidate that joins at the time now, in microseconds. A step of priority
-- is worth 115 days, so a candidate is before all of lower priority that came less than that
-- earlier. Among those of its own priority it is the last, whatever the clock says. enter.lua uses
-- this function in place of that of queue.lua; no number is a multiple of ten: see there.
coming = function(now)
  local step = 10000000000000
  local number = now - priority * step
  local last = redis.call('ZREVRANGEBYSCORE', KEYS[3], string.format('%.0f', number + step / 2),
    string.format('%.0f', number - step / 2), 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if last then
    number = math.max(tonumber(last) + 1, number)
  end
  if number % 10 == 0 then
    number = number + 1
  end
  return number
end

-- This read comes first, so that the script fails before it has written anything if the key holds
-- another type of value.
local leads = redis.call('HMGET', KEYS[6], 'owner', 'priority', 'asked')
if preempts and leads[1] and not leads[3] and tonumber(leads[2]) < priority
  and redis.call('HEXISTS', KEYS[1], leads[1]) == 1 then
  if type(redis.pcall('HSET', KEYS[6], 'asked', 'a candidate of higher priority waits: ' .. identity)) == 'number' then
    publish(ARGV[10], changes, '0')
  end
end

-- Notes what the candidate says of itself, for as long as the queue stays. If memory is short,
-- HSETNX is refused, and nothing is noted.
local function note()
  if type(redis.pcall('HSETNX', KEYS[7], ARGV[2], string.format('%.0f ', priority) .. identity)) == 'number'
    and type(redis.pcall('PEXPIRE', KEYS[7], life(tonumber(ARGV[5])))) == 'table' then
    redis.pcall('HDEL', KEYS[7], ARGV[2])
  end
end

-- enter.lua gives a place by this function in place of that of queue.lua: with the place comes the
-- note. So a call that fails leaves no note.
local enqueue = join
join = function(owner, number, ms, keep)
  local failed = enqueue(owner, number, ms, keep)
  if not failed then
    note()
  end
  return failed
end

if redis.call('ZSCORE', KEYS[3], ARGV[2]) then
  note()
end

