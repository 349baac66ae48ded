-- Returns this server's marker, which shows whether the server is known to have kept its data. It
-- writes a marker if it is told to.
--
-- KEYS[1] the marker: "new:<time>:<set>" or "lost:<time>:<set>". The time is by the server's
--         clock, in microseconds. A marker of an earlier version has no set
-- ARGV[1] not-after, in microseconds of the server's clock
-- ARGV[2] what to write if there is no marker. "new": a quorum begins with this server;
--         "lost": the server has lost its data; "": nothing. "lost" also replaces a marker
--         whose time is still to come
-- ARGV[3] the set of servers of the quorum that asks
--
-- Returns {1, time, the marker}  a string; "" if there is none
--         {-1, time}             late: nothing was done

local marker = redis.call('GET', KEYS[1]) or ''
local at = tonumber(string.match(marker, '^%a+:(%d+)') or 0)
if ARGV[2] ~= '' and marker == '' or ARGV[2] == 'lost' and at > now then
  marker = ARGV[2] .. ':' .. string.format('%.0f', now) .. ':' .. ARGV[3]
  redis.call('SET', KEYS[1], marker)
end
return {1, now, marker}
