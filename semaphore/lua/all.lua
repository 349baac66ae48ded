-- How many permits of a semaphore there are in all. Redisson records only how many are free. The
-- number in all is known of a semaphore that Holdfast has set, for a week after the last call.
--
-- KEYS[3] a hash. all: how many permits there are in all; 0, or no hash: not known.
--         since: when the semaphore was set, in microseconds of the server's clock, which
--         distinguishes it from one that is made anew
--
-- It runs after once.lua. The scripts after it use inAll(), setAll(), keepAll() and dropAll().

-- inAll returns how many permits there are in all; 0: not known.
local function inAll()
  return tonumber(redis.call('HGET', KEYS[3], 'all') or 0)
end

-- keepAll puts off the expiry of the record. Returns the error if that fails.
local function keepAll()
  return failed('PEXPIRE', redis.pcall('PEXPIRE', KEYS[3], text(7 * tonumber(ARGV[4]))))
end

-- dropAll forgets the number.
local function dropAll()
  redis.pcall('HDEL', KEYS[3], 'all', 'since')
end

-- setAll records how many permits there are in all, of the semaphore that was set at since. Returns
-- the error if that fails; then the number is not known.
local function setAll(all, since)
  local failure = failed('HSET', redis.pcall('HSET', KEYS[3], 'all', text(math.max(all, 0)), 'since', text(since)))
  failure = failure or keepAll()
  if failure then
    dropAll()
  end
  return failure
end

