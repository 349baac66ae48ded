-- Functions of scripts that undo what they have done when a later command is refused.

-- text formats a number so that Redis can read it.
local function text(n)
  return string.format('%.0f', n)
end

-- failed returns the reply of a pcall if it is an error, which then names the command. Few servers do.
local function failed(command, reply)
  if type(reply) == 'table' and reply.err then
    reply.err = reply.err .. " ('" .. command .. "')"
    return reply
  end
end

