-- include: queue locks
-- What a key remembers of its turns, for people; nothing is decided by it. Lines, the newest first:
-- "ended_ms holder waited+took verdict[*turns alike in a row] what it did < triggers", times in ms, triggers as lib/queue keeps them.
local LINES_MAX, BYTES_MAX, FLEET_BYTES_MAX, AGE_MAX_MS = 20, 1000, 67108864, 86400000
local OVERHEAD_BYTES = 200 -- about what Redis needs for the history of a key beside its name, thrice, and its text

-- What the keys of a queue remember so far. Call it before the first write: a key of a wrong type must fail there.
local pasts, fleet_bytes = {}, nil
local function read_turns(queue, keys)
  local texts = redis.call('HMGET', base .. queue .. ':history', unpack(keys))
  for i, key in ipairs(keys) do pasts[queue .. ':' .. key] = {queue = queue, key = key, was = texts[i] or ''} end
  redis.call('ZCARD', base .. 'histories')
  fleet_bytes = fleet_bytes or tonumber(redis.call('GET', base .. 'history_bytes') or 0) or 0
end

-- A turn is over: this was its lock. Turns that end alike stand on one line, so that they do not push out the others.
local function end_turn(queue, key, lock, verdict, did, now)
  local past = pasts[queue .. ':' .. key]
  local text, turns = past.is or past.was, 1
  local since_ms, queued_ms, why = string.match(lock, 'since_ms=(%d+) why=(%d+) (.*)$')
  if not since_ms then since_ms, queued_ms, why = now, now, '0 unknown' end
  local waited_ms, took_ms = math.max(0, since_ms - queued_ms), math.max(0, now - since_ms)
  if did == '' then did = '-' end
  local known, alike, known_did, others = string.match(text, '^%d+ %S+ %S+ (%a+)%*?(%d*) ([^\n]-) < [^\n]*\n?(.*)$')
  if known == verdict and known_did == did then turns, text = (tonumber(alike) or 1) + 1, others end
  local line = table.concat({
    number(now), holder_of(lock), number(waited_ms) .. '+' .. number(took_ms), verdict .. (turns > 1 and '*' .. number(turns) or ''), did, '<', why,
  }, ' ')
  text = text == '' and line or line .. '\n' .. text
  local _, breaks = string.gsub(text, '\n', '')
  if breaks >= LINES_MAX then text = string.match(text, '^(.*)\n') end
  if #text > BYTES_MAX then text = string.match(string.sub(text, 1, BYTES_MAX + 1), '^(.*)\n') or string.sub(line, 1, BYTES_MAX) end
  past.is = text
end

local function size_of(queue, key, text) return text == '' and 0 or OVERHEAD_BYTES + 3 * #queue + 3 * #key + #text end

local function drop_histories(tasks)
  for _, task in ipairs(tasks) do
    local queue, key = split(task)
    redis.call('ZREM', base .. 'histories', task)
    if queue then -- what somebody else put there is no task
      local text = redis.call('HGET', base .. queue .. ':history', key) or ''
      redis.call('HDEL', base .. queue .. ':history', key)
      fleet_bytes = math.max(0, fleet_bytes - size_of(queue, key, text))
    end
  end
end

-- The holder of a lock is gone, or was too slow. Its key is to be queued or parked.
local function lose_turn(queue, key, holder, lock, now)
  if lock then end_turn(queue, key, lock, 'lost', '', now) end
  because(queue, key, 'lost ' .. holder)
end

-- Write down the turns that have ended. What was written longest ago goes first where a fleet has too much of it.
local function keep_turns(now)
  local texts, ages = {}, {}
  for task, past in pairs(pasts) do
    if past.is then
      local of = texts[past.queue] or {}
      texts[past.queue] = of
      of[#of + 1], of[#of + 2] = past.key, past.is
      ages[#ages + 1], ages[#ages + 2] = number(now), task
      fleet_bytes = fleet_bytes + size_of(past.queue, past.key, past.is) - size_of(past.queue, past.key, past.was)
    end
  end
  if #ages == 0 then return end
  for queue, of in pairs(texts) do redis.call('HSET', base .. queue .. ':history', unpack(of)) end
  redis.call('ZADD', base .. 'histories', unpack(ages))
  while fleet_bytes > FLEET_BYTES_MAX do
    local oldest = redis.call('ZRANGE', base .. 'histories', 0, 99)
    if #oldest == 0 then fleet_bytes = 0 end
    drop_histories(oldest)
  end
  redis.call('SET', base .. 'history_bytes', number(fleet_bytes))
end

-- Histories are the first to go: when Redis is nearly full, all of them; and those of keys without a turn for a day.
local function trim_histories(queues, now)
  local info = redis.pcall('INFO', 'memory')
  local text = type(info) == 'string' and info or ''
  local used, most = string.match(text, 'used_memory:(%d+)'), string.match(text, 'maxmemory:(%d+)')
  if used and most and tonumber(most) > 0 and used / most > 0.9 then
    for _, queue in ipairs(queues) do redis.call('UNLINK', base .. queue .. ':history') end
    redis.call('UNLINK', base .. 'histories', base .. 'history_bytes')
    return
  end
  local old = redis.call('ZRANGEBYSCORE', base .. 'histories', '-inf', number(now - AGE_MAX_MS), 'LIMIT', 0, 200)
  if #old == 0 then return end
  fleet_bytes = tonumber(redis.call('GET', base .. 'history_bytes') or 0) or 0
  drop_histories(old)
  redis.call('SET', base .. 'history_bytes', number(fleet_bytes))
end
