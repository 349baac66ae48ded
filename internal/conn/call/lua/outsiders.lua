-- Begins a script that has to know who listens: outsiders returns whether anyone but
-- Clients of Holdfast listens on the channel. Every waiting Client listens on the channel clients
-- too, and nobody else does. The command is the one that publishes. If the server does not say, it
-- returns true. In the quiet form it returns nil, as the server may not be asked: see quiet.lua. It
-- runs after publish.lua.
local function outsiders(command, channel, clients)
  local count = command == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local listen = redis.pcall('PUBSUB', count, channel, clients)
  local all, ours = listen[2], listen[4]
  if not ours then
    return true
  end
  -- For some numbers of listeners, such as 8, Valkey 9 adds the address of a table to the number.
  -- Then a message counts them. It is one that Clients ignore.
  if math.max(all, ours) > 1000000 then
    all, ours = publish(command, channel, '00'), publish(command, clients, '00')
    if type(all) ~= 'number' or type(ours) ~= 'number' then
      return true
    end
  end
  return all > ours
end
