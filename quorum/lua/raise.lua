-- Raises the last token given to at least a number. It never lowers the token, so it may run late
-- and any number of times.
--
-- KEYS[1] the last token given
-- ARGV[1] not-after: ignored
-- ARGV[2] the number
-- ARGV[3] how long the token is kept, in ms, unless it is kept for ever. A token that is ahead
--         of this server's clock is kept for longer by as much as it is ahead: if it were
--         forgotten sooner, a smaller one would follow
--
-- Returns {1, time}

if tonumber(redis.call('GET', KEYS[1]) or 0) < tonumber(ARGV[2]) then
  if redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('SET', KEYS[1], ARGV[2])
  else
    local ahead = math.max(math.ceil((tonumber(ARGV[2]) - now) / 1000), 0)
    redis.call('SET', KEYS[1], ARGV[2], 'PX', string.format('%.0f', ARGV[3] + ahead))
  end
end
return {1, now}
