-- What a script begins with that has to know who listens: outsiders returns whether anyone but
-- Clients of Holdfast listens on the channel. Every waiting Client listens on the channel clients
-- too, and nobody else does. The command is the one that publishes. If the server does not say, it
-- returns true. In the quiet form it returns nil, as the server may not be asked: see quiet.lua.
local function outsiders(command, channel, clients)
  local count = command == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local listen = redis.pcall('PUBSUB', count, channel, clients)
  return not listen[4] or listen[2] > listen[4]
end
