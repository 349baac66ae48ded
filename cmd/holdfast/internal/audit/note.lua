-- Notes a release by force before those that are noted. It is one command that sets the value and its end, so nothing
-- stays for ever. It may run twice: then a line is there twice.
--
-- KEYS[1] the record of the name: a string, one JSON object a line, the latest first
-- ARGV[1] the line
-- ARGV[2] how long the record is kept from now on, in ms
-- ARGV[3] how many lines are kept
--
-- Returns 1
local old, lines, n = redis.call('GET', KEYS[1]), ARGV[1], 1
if old then
  for line in string.gmatch(old, '[^\n]+') do
    if n < tonumber(ARGV[3]) then
      lines, n = lines .. '\n' .. line, n + 1
    end
  end
end
redis.call('SET', KEYS[1], lines, 'PX', ARGV[2])
return 1
