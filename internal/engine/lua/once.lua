-- Has a call count once, however often it is sent: the beginning of every script
-- whose effect has no owner by whom it could be told whether it ran.
--
-- Each call runs on a lane of its Client's ledger, which one call uses at a time,
-- and has a number that is greater than that of every earlier call on the lane.
-- The lane holds "<number> <status> <value>" of the last call that took effect.
-- A call of that number came before, and is answered as it was; one of a lower
-- number has been overtaken, nobody waits for it any more, and it does nothing.
--
-- KEYS[1] what it is about: a string, a whole number
-- KEYS[2] the ledger of the Client: a hash {lane: last call}, with an expiry
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the lane
-- ARGV[3] the call's number
-- ARGV[4] how long the ledger is kept, in ms
--
-- Returns {status, time, value}  as the script says, now or by an earlier sending
--         {0, time}              overtaken: nothing was done
--         {-1, time}             late: nothing was done
--
-- What follows it finds: now; value and number, what stands at KEYS[1]; again,
-- whether the call came before; earlier() and once().
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[1]) then
  return {-1, now}
end
local lane = redis.call('HGET', KEYS[2], ARGV[2])
local last, status, result = string.match(lane or '', '^(%d+) (%d+) (%-?%d+)$')
if last and tonumber(last) > tonumber(ARGV[3]) then
  return {0, now}
end
local again = last == ARGV[3]

local value = redis.call('GET', KEYS[1])
if value and not string.match(value, '^%-?%d+$') then
  return redis.error_reply('WRONGTYPE the key holds no whole number')
end
local number = tonumber(value or 0)

-- text writes a number as Redis reads it.
local function text(n)
  return string.format('%.0f', n)
end

-- failed returns the reply of a pcall if it is an error.
local function failed(reply)
  if type(reply) == 'table' and reply.err then
    return reply
  end
end

-- earlier returns what an earlier sending of the call was answered.
local function earlier()
  return {tonumber(status), now, tonumber(result)}
end

-- once records the call and has it take effect, both or neither. effect returns
-- the error that it failed with, if it did, and then has left things as they were.
-- A call that frees something goes through when memory is short: PEXPIRE is
-- allowed then, and after a first write the rest is too.
local function once(outcome, value, frees, effect)
  if frees then
    redis.call('PEXPIRE', KEYS[2], ARGV[4])
  end
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3] .. ' ' .. text(outcome) .. ' ' .. text(value))
  local failure = failed(redis.pcall('PEXPIRE', KEYS[2], ARGV[4]))
  if not failure and effect then
    failure = effect()
  end
  if failure then
    if lane then
      redis.call('HSET', KEYS[2], ARGV[2], lane)
    else
      redis.call('HDEL', KEYS[2], ARGV[2])
    end
    return failure
  end
  return {outcome, now, value}
end

