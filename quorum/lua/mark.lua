-- Returns this server's marker, which shows whether the server is known to have kept its data. It
-- writes a marker if ARGV[2] says so.
--
-- KEYS[1] the marker: "empty:<time>:<set>", "new:<time>:<set>" or "lost:<time>:<set>". The time is
--         by the server's clock, in microseconds. A marker of an earlier version has no set
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] what to write. "empty", if there is no marker: from now on the server is known to keep its
--         data; "new", in place of the marker ARGV[4] and of no other: a quorum begins with this
--         server; "lost", if there is no marker, or an empty one, or one whose time is still to
--         come: the server has lost its data; "": nothing
-- ARGV[3] the set of servers of the quorum that asks
-- ARGV[4] the marker that "new" replaces. A server that has lost its data since does not have it
--
-- Returns {1, time, the marker}  a string; "" if there is none
--         {-1, time}             late: nothing was done

local marker = redis.call('GET', KEYS[1]) or ''
local kind, at = string.match(marker, '^(%a+):(%d+)')
local write = ARGV[2]
local none, later = marker == '', tonumber(at or 0) > now
if write == 'empty' and none
    or write == 'new' and not none and marker == ARGV[4]
    or write == 'lost' and (none or kind == 'empty' or later) then
  marker = write .. ':' .. string.format('%.0f', now) .. ':' .. ARGV[3]
  redis.call('SET', KEYS[1], marker)
end
return {1, now, marker}
