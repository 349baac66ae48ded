-- Begins the quiet form of a script. Some servers refuse a script that names a command of
-- Pub/Sub, even in a comment. NewScript makes this form for them: it leaves out the comments, and
-- puts postpone in place of publish. The script's messages are returned behind its own reply, and
-- the Client publishes them.
--
-- Returns {what the script returns..., {command, channel, message, command, channel, message...}},
-- or the error that the script returns: then the messages are lost.
local notes = {}

-- Notes a message. Returns nil: nobody has heard it yet.
local function postpone(command, channel, message)
  local n = #notes
  notes[n + 1], notes[n + 2], notes[n + 3] = command, channel, message
end

-- Returns nil: whether others than Clients of Holdfast listen cannot be asked. So they are notified. But
-- nothing is left to them: a server that refuses this refuses Redisson's release too.
local function outsiders()
  return nil
end

-- Returns the script's reply with the notes behind it. A number alone is the status of a script without the time.
local function noted(reply)
  if type(reply) == 'number' then
    reply = {reply, 0}
  end
  if reply[1] then
    reply[#reply + 1] = notes
  end
  return reply
end
