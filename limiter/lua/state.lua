-- What is stored in Redis for a limit. Each script of a limit begins with this file.
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
-- The scripts after it use the words above, with the debt as of now; rate is nil if there is no limit.

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

-- of returns how many units a request has taken.
local function of(request)
  return tonumber(string.match(request, ':(%d+)$') or 1)
end

-- Debts are answered up to ever, and keys last no longer than that. A debt is longer after Set to a rate of almost
-- nothing: it is written whole, so that those that wait keep their order and distances when the next Set comes.
local ever = 2 ^ 53

-- write writes the limit, which lasts until it is full again; longer, if that is in ms, by what stays.
local function write(stays)
  debt = math.floor(debt * 1000 + 0.5) / 1000
  -- Nothing reads a number with an exponent, as the first format writes it from 10^14 on, to which it may round, and as
  -- Lua writes it without a format.
  local text = string.format(debt < 1e13 and '%.14g' or '%.0f', debt) .. string.format(' %.0f ', taken + 0)
  redis.call('SET', KEYS[1], clock .. ' ' .. text .. rate .. requests,
    'PX', math.min(math.max(math.ceil(debt / 1000), 1) + stays, ever / 1024))
end

