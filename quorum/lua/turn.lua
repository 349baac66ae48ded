-- Keeps the order in which callers wait for a quorum's lock: whoever has waited longest asks for it.
--
-- KEYS[1] the waiters that this server knows: a text with a line "<waiter> <since> <until>" for each. It
--         waits since then, and its place counts until then, in ms of the server's clock
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] the waiter that asks
-- ARGV[3] how long it has waited, in ms; -1: it waits no longer
-- ARGV[4] for how long its place counts from now, in ms
--
-- Returns {1, time, before}  how many others have waited longer
--         {-1, time}          late: nothing was done
--
-- Its one write, SET with PX, leaves nothing without an expiry. Of very many waiters only some are
-- noted: each of the rest is behind those.

local me, stays = ARGV[2], tonumber(ARGV[3]) >= 0
local ms = math.floor(now / 1000)
local since = ms - math.max(tonumber(ARGV[3]), 0)
local before, lines, found = 0, {}, false
for waiter, at, till in string.gmatch(redis.call('GET', KEYS[1]) or '', '(%S+) (%d+) (%d+)\n') do
  if waiter == me then
    found = true
  -- A place that counts for too long is from before the server's clock was set back.
  elseif tonumber(till) > ms and tonumber(till) <= ms + 10 * tonumber(ARGV[4]) then
    lines[#lines + 1] = waiter .. ' ' .. at .. ' ' .. till .. '\n'
    if tonumber(at) < since or tonumber(at) == since and waiter < me then
      before = before + 1
    end
  end
end
local others = #lines
if stays and others < 100 then
  lines[#lines + 1] = string.format('%s %.0f %.0f\n', me, since, ms + tonumber(ARGV[4]))
end
if stays and others < 100 or found then
  redis.call('SET', KEYS[1], table.concat(lines), 'PX', ARGV[4])
end
return {1, now, before}
