-- What is stored in Redis for a limit. Each script of a limit begins with this file, and ends with write.lua.
--
-- KEYS[1] the limit: "<time> <debt> <taken> <rate>", and the last three requests that took of it, the
--         newest first, each as " <id>:<units>", or " <id>" for one unit.
--         time: the server's, of the last change, in microseconds. debt: how long from then on the limit is not full, in
--         microseconds. Each unit that is taken adds its time, and time pays it off. It may be as long as the time of
--         the burst, and longer by what callers wait for. taken: how many units were taken, by which one that waits
--         finds its place in the debt again. rate: the one by which the debt was made: "<count> <period> <burst>
--         <rev>". A unit's time is period / count, in microseconds. rev: when it was set by Set, in microseconds; 0: it
--         is a caller's option
--
-- Returns the error WRONGTYPE if KEYS[1] holds anything else.
--
-- The files after it use the words above, with the debt as of now; rate is nil if there is no limit. They have no
-- functions: those made a decision 5 % dearer, and 9 % in a bundle.

local state = redis.call('GET', KEYS[1])
local debt, taken, rate, requests = 0, 0, nil, ''
if state then
  local at
  at, debt, taken, rate, requests = string.match(state, '^(%d+) ([%d.]+) (%d+) (%d+ %d+ %d+ %d+)(.*)$')
  if not rate then
    return redis.error_reply('WRONGTYPE the key holds no limit')
  end
  -- If the clock was set back, no time has passed: a caller waits once more, at most.
  debt = math.max(debt - math.max(now - at, 0), 0)
end

-- What the files after it decide: to, the rate by which the limit goes on, if not by its own; whether anything has
-- changed; how long the key stays once the limit is full, in ms; and what the script answers.
local to, changed, stays, answer = nil, false, 0, nil

-- month is how long a rate that was set on the limit itself stays after a call, in ms. Debts are answered up to ever,
-- in microseconds, and keys last no longer than that.
local month, ever = 30 * 24 * 3600 * 1000, 2 ^ 53
