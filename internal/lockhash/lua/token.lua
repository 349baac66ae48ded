-- Begins the scripts that grant a lock: how its token grows.
--
-- Writes a token that is greater than the last, and as the server's clock in
-- microseconds, now, or early before that. Returns it, and the last, which may be a
-- text; 0 if there is none: then the new one is no earlier than the clock. Where early
-- is 0 text may be the clock as a text, which is cheaper than to write the number.
--
-- The token is kept for life, in ms; '0': for ever. That is put off once in a thousand
-- seconds, not at each grant, so it may be so much less. One that is ahead of the clock,
-- which was set back, is kept for as long as it is ahead besides: forgotten before, it
-- would be followed by a smaller one. And for two hours more, which tells it from those
-- that are the time of their grant. One found without an end stays so.
local function advance(key, now, life, early, text)
  local keep, token = life == '0' and 'GET' or 'KEEPTTL', now - early
  text = text or string.format('%.0f', token)
  local last = redis.call('SET', key, text, 'XX', 'GET', keep)
  -- Clocks of one length are in order as texts are. The last nine digits are a thousand
  -- seconds.
  if last and #last == #text and last < text and string.sub(last, 1, -10) == string.sub(text, 1, -10) then
    return token, last
  end
  last = tonumber(last or 0)
  if last == 0 then
    token = now
    if life == '0' then
      redis.call('SET', key, string.format('%.0f', token))
    else
      redis.call('SET', key, string.format('%.0f', token), 'PX', life)
    end
    return token, last
  end
  if last >= token then
    token = last + 1
    redis.call('SET', key, string.format('%.0f', token), 'XX', 'GET', keep)
  end
  local ahead, step = token > now, 1000000000
  if life ~= '0' and (ahead or math.floor(last / step) ~= math.floor(now / step))
    and redis.call('PTTL', key) ~= -1 then
    local more = ahead and math.floor((token - now) / 1000) + 7200000 or 0
    redis.call('PEXPIRE', key, string.format('%.0f', life + more))
  end
  return token, last
end

