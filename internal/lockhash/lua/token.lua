-- What the scripts that grant a lock share: how its token grows. Those scripts begin with this
-- file.
--
-- advance writes to KEYS[k] a token that is greater than the last one, and no less than the argument least: the
-- server's clock in microseconds minus early, as a text. It returns the token as a text, and the last one. That may be
-- a text too. It is 0 if there was none; then the new token is the clock, whatever early is.
--
-- The token is kept for life ms; '0': for ever. Its expiry is put off once in a thousand seconds,
-- not at each grant, so the token may be kept for that much less. A token that is ahead of the
-- clock, because the clock was set back, is kept for longer by as much as it is ahead: if it were
-- forgotten sooner, a smaller one would follow. It is kept for two hours more than that, which
-- distinguishes it from tokens that are the time of their grant. A token that is found without an
-- expiry is given none.
local function advance(k, least, life, early)
  local keep = life == '0' and 'GET' or 'KEEPTTL'
  local last = redis.call('SET', KEYS[k], least, 'XX', 'GET', keep)
  -- Texts of the same length are in the order of their numbers. The last nine digits are a thousand
  -- seconds: a text of before begins with less than the others.
  if last and #last == #least and last < least and last > string.sub(least, 1, -10) then
    return least, last
  end
  local token, text = tonumber(least), least
  local now = token + early
  last = tonumber(last or 0)
  if last == 0 then
    text = string.format('%.0f', now)
    if life == '0' then
      redis.call('SET', KEYS[k], text)
    else
      redis.call('SET', KEYS[k], text, 'PX', life)
    end
    return text, last
  end
  if last >= token then
    token = last + 1
    text = string.format('%.0f', token)
    redis.call('SET', KEYS[k], text, 'XX', 'GET', keep)
  end
  local ahead, step = token > now, 1000000000
  if life ~= '0' and (ahead or math.floor(last / step) ~= math.floor(now / step))
    and redis.call('PTTL', KEYS[k]) ~= -1 then
    local more = ahead and math.floor((token - now) / 1000) + 7200000 or 0
    redis.call('PEXPIRE', KEYS[k], string.format('%.0f', life + more))
  end
  return text, last
end

