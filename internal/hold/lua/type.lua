-- Returns the type of the value at a key, for the error of a call that found another type than it
-- takes. It only reads.
--
-- KEYS[1] the key
-- ARGV[1] not-after: ignored
--
-- Returns {1, time, type}  a string: 'none', 'string', 'hash', ...

return {1, now, redis.call('TYPE', KEYS[1]).ok}
