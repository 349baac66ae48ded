-- What is beside a name, as far as it can be read, and the reply of inspect.lua.

local ms = string.format('%.0f', math.floor(now / 1000))

local ask = {
  GET = function(key) return redis.pcall('GET', key) end,
  PTTL = function(key) return redis.pcall('PTTL', key) end,
  EXISTS = function(key, another) return redis.pcall('EXISTS', key, another) end,
  HGET = function(key, field) return redis.pcall('HGET', key, field) end,
  HGETALL = function(key) return redis.pcall('HGETALL', key) end,
  HKEYS = function(key) return redis.pcall('HKEYS', key) end,
  HLEN = function(key) return redis.pcall('HLEN', key) end,
  ZCARD = function(key) return redis.pcall('ZCARD', key) end,
  ZCOUNT = function(key, from, to) return redis.pcall('ZCOUNT', key, from, to) end,
  ZSCORE = function(key, member) return redis.pcall('ZSCORE', key, member) end,
  ZFIRST = function(key) return redis.pcall('ZRANGE', key, 0, 99, 'WITHSCORES') end,
  ZRANGE = function(key, from, to) return redis.pcall('ZRANGE', key, from, to, 'WITHSCORES') end,
  ZLAST = function(key) return redis.pcall('ZRANGE', key, -1, -1, 'WITHSCORES') end,
  ZSCAN = function(key, cursor, count) return redis.pcall('ZSCAN', key, cursor, 'COUNT', count) end,
}

-- beside asks for something of a key that may be stored beside the name. It returns nil if there
-- can be no such key, or it cannot be read.
local function beside(what, key, ...)
  if key == '' then
    return nil
  end
  local answer = ask[what](key, ...)
  if type(answer) == 'table' and answer.err then
    return nil
  end
  return answer
end

local function counting(key)
  return beside('ZCOUNT', key, '(' .. ms, '+inf') or -1
end

-- told returns the reply. more may have more of it: token and kept, all, state, who, and those that wait.
local function told(kind, ttl, waiters, value, taken, holders, cursor, more)
  more = more or {}
  local token, kept = more.token or '', more.token and -1 or -2
  if #holders > 0 and not more.token then
    token = beside('GET', ARGV[2]) or ''
    kept = beside('PTTL', ARGV[2]) or -2
  end
  local reply = {1, now, kind, ttl, waiters, token, kept, value, taken, cursor or '0',
    more.all or '', more.state or '', more.who or '', #holders / 3, beside('GET', ARGV[23]) or ''}
  for _, part in ipairs(holders) do
    reply[#reply + 1] = part
  end
  for _, part in ipairs(more.queue or {}) do
    reply[#reply + 1] = part
  end
  return reply
end

-- waiting adds those to queue that wait at key, and are heard of until a time at alive. text returns
-- the text of an owner.
local function waiting(queue, key, alive, text)
  if ARGV[8] ~= '0' then
    return queue
  end
  local found = beside('ZFIRST', key) or {}
  for i = 1, #found, 2 do
    local till = beside('ZSCORE', alive, found[i])
    if till and tonumber(till) > tonumber(ms) then
      queue[#queue + 1] = found[i]
      queue[#queue + 1] = found[i + 1]
      queue[#queue + 1] = text(found[i])
    end
  end
  return queue
end
