-- Ends each script of a limit: writes it if it has changed, and answers. The limit lasts until it is full again, and
-- longer by what stays.

if changed then
  debt = math.floor(debt * 1000 + 0.5) / 1000
  -- A debt is longer than ever after Set to a rate of almost nothing: it is written whole, so that those that wait keep
  -- their order and distances when the next Set comes. Nothing reads a number with an exponent, as the first format
  -- writes it from 10^14 on, to which it may round, and as Lua writes it without a format.
  local text = string.format(debt < 1e13 and '%.14g' or '%.0f', debt) .. string.format(' %.0f ', taken + 0)
  redis.call('SET', KEYS[1], clock .. ' ' .. text .. rate .. requests,
    'PX', math.min(math.max(math.ceil(debt / 1000), 1) + stays, ever / 1024))
end
return answer
