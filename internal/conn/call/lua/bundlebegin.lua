-- What a bundle begins with, after time.lua: see bundleend.lua.

-- A local name is found faster than a global one.
local redis, pcall, type, tonumber, string, math = redis, pcall, type, tonumber, string, math

-- The body of each call asks this first, unless it does its work however late it runs.
local now = tonumber(clock)
local late = now > tonumber(ARGV[1])

-- Where the keys of the present call begin, and its own arguments: behind these places in KEYS and
-- in ARGV. run has the body of each part.
local key, arg, run = 0, 0, {}

