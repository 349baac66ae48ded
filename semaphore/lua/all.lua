-- How many permits of a semaphore there are in all. Redisson keeps only how many are
-- free; this is known of what Holdfast has set, and for a week after the last call.
--
-- KEYS[3] a hash: all, how many there are; since, when the semaphore was set, in
--         microseconds of the server's clock, by which it is told from one that is made
--         anew. 0 in all, as where the record is missing: not known
--
-- It follows once.lua. What follows it finds inAll(), setAll(), keepAll(), dropAll().

-- inAll returns how many there are.
local function inAll()
  return tonumber(redis.call('HGET', KEYS[3], 'all') or 0)
end

-- keepAll puts off that the record is forgotten.
local function keepAll()
  return failed(redis.pcall('PEXPIRE', KEYS[3], text(7 * tonumber(ARGV[4]))))
end

-- dropAll forgets it.
local function dropAll()
  redis.pcall('HDEL', KEYS[3], 'all', 'since')
end

-- setAll sets how many there are, of a semaphore that there is since then. It returns the
-- error that it failed with, and then nothing is known.
local function setAll(all, since)
  local failure = failed(redis.pcall('HSET', KEYS[3], 'all', text(math.max(all, 0)), 'since', text(since)))
  failure = failure or keepAll()
  if failure then
    dropAll()
  end
  return failure
end

