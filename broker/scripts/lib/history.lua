-- include: queue locks
-- What a key remembers of its turns, for people; nothing is decided by it. Lines, the newest first:
-- "verdict what it did < turns alike in a row, ended_ms, and of the lock: holder since_ms=.. why=..".
local BYTES_MAX, FLEET_BYTES_MAX = 1000, 67108864
local AGE_MAX_MS, PERIOD_MS = 86400000, 600000 -- ages are kept by the period, sizes by the block: most turns then need not write them
local BLOCK_BYTES, OVERHEAD_BYTES = 64, 200 -- overhead: about what Redis needs for a history beside its text and its key, thrice

-- What the keys of a queue remember so far. Call it before the first write: a key of a wrong type must fail there.
local pasts, news, ages, grown_bytes = {}, {}, {}, 0
local function read_turns(queue, keys)
  local texts, of = redis.call('HMGET', base .. queue .. ':history', unpack(keys)), pasts[queue] or {}
  for i, key in ipairs(keys) do of[key] = texts[i] or '' end
  pasts[queue] = of
  redis.call('ZCARD', base .. 'histories')
end

local function size_of(queue, key, text)
  return text == '' and 0 or OVERHEAD_BYTES + 3 * (#queue + #key) + math.ceil(#text / BLOCK_BYTES) * BLOCK_BYTES
end

local function period_of(ms) return ms - ms % PERIOD_MS end

-- A turn is over: of its lock, the holder and what stands behind the nonce. Turns that end alike stand on one line, so that they do not
-- push out the others.
local function end_turn(queue, key, holder, since, verdict, did, now)
  local was, turns, ended_ms = pasts[queue][key], 1, nil
  local text, head = was, verdict .. ' ' .. (did == '' and '-' or did) .. ' < '
  if string.sub(text, 1, #head) == head then
    turns, ended_ms = string.match(text, '^(%d+) (%d+)', #head + 1)
    turns, text = (turns or 0) + 1, string.sub(text, (string.find(text, '\n', #head, true) or #text) + 1)
  end
  local line = head .. turns .. ' ' .. now .. ' ' .. holder .. ' ' .. since
  text = text == '' and line or line .. '\n' .. text
  if #text > BYTES_MAX then text = string.match(string.sub(text, 1, BYTES_MAX + 1), '^(.*)\n') or string.sub(line, 1, BYTES_MAX) end
  local of = news[queue] or {}
  of[#of + 1], of[#of + 2] = key, text
  news[queue], pasts[queue][key] = of, text
  if #text ~= #was then grown_bytes = grown_bytes + size_of(queue, key, text) - size_of(queue, key, was) end
  if not ended_ms or period_of(ended_ms) ~= period_of(now) then
    ages[#ages + 1], ages[#ages + 2] = number(period_of(now)), queue .. ':' .. key
  end
end

-- A count that somebody spoiled begins anew.
local function counted_bytes()
  local count = redis.pcall('GET', base .. 'history_bytes')
  return type(count) == 'string' and tonumber(count) or 0
end

-- Returns the bytes of the histories that it drops.
local function drop_histories(tasks)
  local bytes = 0
  for _, task in ipairs(tasks) do
    local queue, key = split(task)
    redis.call('ZREM', base .. 'histories', task)
    if queue then -- what somebody else put there is no task
      local text = redis.call('HGET', base .. queue .. ':history', key) or ''
      redis.call('HDEL', base .. queue .. ':history', key)
      bytes = bytes + size_of(queue, key, text)
    end
  end
  return bytes
end

-- The holder of a lock is gone, or was too slow. Returns why its key is queued, which it is to be, or parked: with the time of the lost
-- claim, from which the next one counts how long nobody worked on the key.
local function lose_turn(queue, key, holder, lock, now)
  local since = string.match(lock or '', ' nonce=%S+ (.*)$') or ''
  if lock then end_turn(queue, key, holder, since, 'lost', '', now) end
  local _, why = split_state(redis.call('HGET', base .. queue .. ':state', key))
  return with_trigger(why, 'lost ' .. holder .. ' ' .. (string.match(since, '^since_ms=(%d+)') or number(now)), now)
end

-- Write down the turns that have ended. What was written longest ago goes first where a fleet has too much of it.
local function keep_turns()
  for queue, of in pairs(news) do redis.call('HSET', base .. queue .. ':history', unpack(of)) end
  if #ages > 0 then redis.call('ZADD', base .. 'histories', unpack(ages)) end
  if grown_bytes == 0 then return end
  local fleet_bytes = math.max(0, counted_bytes() + grown_bytes)
  while fleet_bytes > FLEET_BYTES_MAX do
    local oldest = redis.call('ZRANGE', base .. 'histories', 0, 99)
    fleet_bytes = #oldest == 0 and 0 or math.max(0, fleet_bytes - drop_histories(oldest))
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
  redis.call('SET', base .. 'history_bytes', number(math.max(0, counted_bytes() - drop_histories(old))))
end
