-- Begins a script that publishes: publish sends the message on the channel by the
-- command, which is PUBLISH or SPUBLISH. Some servers refuse a script whose commands are not
-- literals. Returns how many heard it, or an error: a release must not fail because its message
-- does. In the quiet form it returns nil, as nobody has heard the message yet: see quiet.lua.
local function publish(command, channel, message)
  if command == 'SPUBLISH' then
    return redis.pcall('SPUBLISH', channel, message)
  end
  return redis.pcall('PUBLISH', channel, message)
end
