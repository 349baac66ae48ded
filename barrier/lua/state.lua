-- Returns the state of a barrier, and writes nothing.
--
-- KEYS[1] the record: see generation.lua
-- ARGV[1] not-after: ignored
--
-- Returns {1, time, generation, parties, arrived}  a generation is under way
--         {0, time, generation}                    none is. The last one; 0: none was

local found = redis.call('HMGET', KEYS[1], 'generation', 'state', 'parties', 'arrived')
local id = tonumber(found[1] or 0)
if found[2] ~= 'open' then
  return {0, now, id}
end
return {1, now, id, tonumber(found[3]), tonumber(found[4])}
