-- Runs several calls one after the other. Before it stand bundlebegin.lua, what the bodies share,
-- and the bodies of the calls as functions, which find their keys behind key and their own arguments
-- behind arg. bundle.go puts all of that together, and knows the layout.
--
-- KEYS           the keys of each call
-- ARGV[1]        not-after of all calls, in microseconds of the server's clock
-- ARGV[2]        a letter for each call: a for the first part, b for the second
-- ARGV[3] and on what all calls of a part have in common, for each part; then what each call has of
--                its own
--
-- Returns {1, time, i, status, n, m, ...} for each call whose answer is not the usual one, a number alone: which it
--                                         is, from 1; its status; and two numbers more, 0 where its script answers
--                                         fewer. Its second number, the time, is not repeated. Status -3: it
--                                         failed, and says how if it is sent alone

local reply, n = {1, now}, 2
arg = firstarg
for i = 1, #ARGV[2] do
  local part = string.byte(ARGV[2], i) - 96
  local done, answer = pcall(run[part])
  if not done or type(answer) ~= 'number' then
    if done and not answer.err then
      reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = i, answer[1], answer[3] or 0, answer[4] or 0
    else
      reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = i, -3, 0, 0
    end
    n = n + 4
  end
  key, arg = key + keys[part], arg + args[part]
end
return reply
