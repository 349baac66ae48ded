-- Notes that a claimant wants the lock no more, even if its claim is still on its way.
--
-- KEYS[1] the claimants: see claim.lua
-- ARGV[1] not-after: ignored
-- ARGV[2] the claimant
-- ARGV[3] how long the claimants are kept, in ms
--
-- Returns {1, time}   done
--         {0, time}   it was done before

local list, listed = redis.call('GET', KEYS[1]) or '', nil
local text = string.gsub(list, '(%d+)([:-])(%S+)', function(_, mark, claimant)
  if claimant == ARGV[2] then
    listed = mark
    return string.format('%.0f-', now) .. claimant
  end
end)
if listed == '-' then
  return {0, now}
end
if not listed then
  text = string.format('%.0f-', now) .. ARGV[2] .. (list == '' and '' or ' ' .. list)
end
redis.call('SET', KEYS[1], text, 'PX', ARGV[3])
return {1, now}
