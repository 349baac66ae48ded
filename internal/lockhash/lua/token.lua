-- Begins the scripts that grant a lock: how its token grows.
--
-- Writes a token that is greater than the last, and as the server's clock in
-- microseconds, now, or early before that. Returns the last, 0 if there is none, and
-- the new one, which is no earlier than the clock then.
--
-- The token is kept for life, in ms; '0': for ever. That is put off once in an hour,
-- not at each grant, so it may be an hour less. One that is ahead of the clock is kept
-- two hours longer, which tells it from those that are the time of their grant. One
-- found without an end stays so.
local function advance(key, now, life, early)
  local keep, hour, token = life == '0' and 'GET' or 'KEEPTTL', 3600000000, now - early
  local last = tonumber(redis.call('SET', key, string.format('%.0f', token), 'XX', 'GET', keep) or 0)
  if last == 0 then
    token = now
    if life == '0' then
      redis.call('SET', key, string.format('%.0f', token))
    else
      redis.call('SET', key, string.format('%.0f', token), 'PX', life)
    end
    return last, token
  end
  if last >= token then
    token = last + 1
    redis.call('SET', key, string.format('%.0f', token), 'XX', 'GET', keep)
  end
  local ahead = token > now
  if life ~= '0' and (ahead or math.floor(last / hour) ~= math.floor(now / hour))
    and redis.call('PTTL', key) ~= -1 then
    redis.call('PEXPIRE', key, string.format('%.0f', life + (ahead and 7200000 or 0)))
  end
  return last, token
end

