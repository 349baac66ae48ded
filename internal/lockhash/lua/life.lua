-- Returns how long the queue's keys stay, in ms, if places are kept for keep ms. So processes that
-- are gone leave nothing behind.
local function life(keep)
  return 6 * keep
end

