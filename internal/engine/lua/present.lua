-- Writes what a Client says of itself, in place of what it said before. It may run twice; if it runs
-- after a later one, it changes nothing.
--
-- KEYS[1] what the Client says: a hash with an expiry. who: its identity. version: which of the
--         Client's writes this is. Each other field is the number of an owner, with the note of its
--         holder
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] how long it stays, in ms
-- ARGV[3] the version: greater than those of all earlier writes
-- ARGV[4] the identity
-- ARGV[5] and on: an owner's number and its note, in pairs
--
-- Returns {1, time}   written, now or by an earlier sending, or a later one is there
--         {-1, time}  late: nothing was done
local version = redis.call('HGET', KEYS[1], 'version')
if version and tonumber(version) > tonumber(ARGV[3]) then
  return {1, now}
end
-- DEL comes first, and runs even if it finds nothing: Redis allows it when memory is short, and after
-- it the other writes too.
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'version', ARGV[3], 'who', ARGV[4])
local expiry = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if type(expiry) == 'table' then
  -- What a Client says must never be left without an expiry.
  redis.call('DEL', KEYS[1])
  expiry.err = expiry.err .. " ('PEXPIRE')"
  return expiry
end
for i = 5, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return {1, now}
