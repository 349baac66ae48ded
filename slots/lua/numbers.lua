-- Who has which number. This file comes before the scripts that look at that.
--
-- KEYS[1] a sorted set. A number that is taken has two members:
--         <number>: when it comes back, in ms of the server's clock: when its lease is over, and its
--                   quarantine after that
--         <owner>:  -2^53 + number * 2^37 + the quarantine in ms. So the owners come first, in the
--                   order of their numbers, and two members say which number an owner has, and whose
--                   a number is
--         One member more, size, is 2^52 + how many numbers there are.
--
-- Both members of a number are written, and removed, by one command: there is never one without the
-- other.

local least, step, sizes = -9007199254740992, 137438953472, 4503599627370496

-- placed returns the score of the owner of a number.
local function placed(number, quarantine)
  return least + number * step + quarantine
end

-- parsed returns the number that an owner's score names, and its quarantine.
local function parsed(score)
  local whole = tonumber(score) - least
  local number = math.floor(whole / step)
  return number, whole - number * step
end

-- taken returns how many numbers have an owner, even if their leases are over.
local function taken()
  return redis.call('ZCOUNT', KEYS[1], '-inf', '(0')
end

-- ownerOf returns the owner of a number, '' if there is none.
local function ownerOf(number)
  return redis.call('ZRANGEBYSCORE', KEYS[1], text(placed(number, 0)), text(placed(number, step - 1)))[1] or ''
end

-- drop gives a number back, and with the last one forgets how many there are.
local function drop(number, owner)
  if taken() == 1 then
    return redis.call('ZREM', KEYS[1], text(number), owner, 'size')
  end
  return redis.call('ZREM', KEYS[1], text(number), owner)
end

