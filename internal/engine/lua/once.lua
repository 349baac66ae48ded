-- Makes a call count once, however often it is sent. A script begins with number.lua and this file
-- if its effect has no owner, so that nothing else in Redis shows whether the call has run.
--
-- Each call runs on a track of its Client's ledger, which only one call uses at a time. Its number
-- is greater than that of every earlier call on the track. The track holds "<number> <status>
-- <value>" of the last call that took effect. A call with that number has run before, and is
-- answered as it was then. A call with a lower number has been overtaken: nobody waits for it any
-- more, and it does nothing.
--
-- KEYS[1] what the call is about: a string, a whole number
-- KEYS[2] the ledger of the Client: a hash {track: last call}, with an expiry
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the track
-- ARGV[3] the call's number
-- ARGV[4] how long the ledger is kept, in ms
--
-- Returns {status, time, value}  as the script says, now or by an earlier sending
--         {0, time}              overtaken: nothing was done
--         {-1, time}             late: nothing was done
--
-- The scripts after it use what number.lua gives; again, which says whether the call has run before;
-- earlier() and once().

local track = redis.call('HGET', KEYS[2], ARGV[2])
local last, status, result = string.match(track or '', '^(%d+) (%d+) (%-?%d+)$')
if last and tonumber(last) > tonumber(ARGV[3]) then
  return {0, now}
end
local again = last == ARGV[3]

-- earlier returns the answer of an earlier sending of the call.
local function earlier()
  return {tonumber(status), now, tonumber(result)}
end

-- once records the call and makes it take effect, both or neither. If effect fails, it returns the
-- error, and has left everything as it was. A call that frees something goes through when memory is
-- short: Redis allows PEXPIRE then, and after a first write the rest too.
local function once(outcome, value, frees, effect)
  if frees then
    redis.call('PEXPIRE', KEYS[2], ARGV[4])
  end
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3] .. ' ' .. text(outcome) .. ' ' .. text(value))
  local failure = failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[2], ARGV[4]))
  if not failure and effect then
    failure = effect()
  end
  if failure then
    if track then
      redis.call('HSET', KEYS[2], ARGV[2], track)
    elseif type(redis.pcall('HDEL', KEYS[2], ARGV[2])) == 'table' then
      -- Whichever commands are refused, the ledger must not say that the call has run, and a new one
      -- must not stay without an expiry.
      if redis.call('PTTL', KEYS[2]) < 0 then
        redis.call('SET', KEYS[2], '', 'PX', 1)
      else
        redis.call('HSET', KEYS[2], ARGV[2], '')
      end
    end
    return failure
  end
  return {outcome, now, value}
end

