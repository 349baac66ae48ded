-- Returns what is stored at a key, for the error of a call that found another type than it takes. It
-- only reads.
--
-- KEYS[1] the key
-- ARGV[1] not-after: ignored
--
-- Returns {1, time, what}  what: 'none', 'hash', 'list' and so on; 'number' for a string that is a
--                          whole number

local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'string' then
  local value = redis.pcall('GETRANGE', KEYS[1], 0, 20) -- a count has at most 16 digits
  if type(value) == 'string' and #value <= 20 and string.match(value, '^%-?%d+$') then
    kind = 'number'
  end
end
return {1, now, kind}
