-- include: queue locks
-- What a key remembers of its turns, for people; nothing is decided by it. First a line "ended_ms name ..": when the newest turn ended, and
-- the names of workers without their last part. Then a line for each turn, or for several alike in a row, the newest first:
--   what it did < [verdict ]ms since the line below ended[xTURNS] WAITED+TOOK NAME/last part EVENTS first trigger
-- Left out: the verdict "ok", and "set " of a trigger. NAME counts the names. "%" in a trigger is the key: no name of the API has one.
local BYTES_MAX, DID_BYTES_MAX = 1000, 300
-- Quiet: a turn that wrote nothing but a status. Of a text that is too long, all but the newest of these are folded, or go.
local BYTES_KEPT, QUIET_KEPT = 900, 6
local FLEET_BYTES_MAX = 67108864
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

-- The number of a worker's name in the first line, the other part of the name, and the first line's names with it.
local function name_in(names, holder)
  local name, part = string.match(holder, '^(.*%-)([^-]*)$')
  local at = 0
  for each in string.gmatch(names, '%S+') do
    at = at + 1
    if each == (name or holder) then return at, part or '', names end
  end
  return at + 1, part or '', names .. ' ' .. (name or holder)
end

local QUIET = {['- < '] = true, ['status < '] = true, ['quiet < '] = true}

-- A text that has become too long, without some of its lines. A line that goes leaves its time to the line above, and its number of
-- turns if that is quiet too.
local function shortened(ended_ms, names, lines)
  local turns, quiet, bytes = {}, 0, #ended_ms + #names + #lines + 1
  for line in string.gmatch(lines, '[^\n]+') do
    local turn = {bytes = #line + 1}
    turn.head, turn.ms, turn.alike, turn.times, turn.name, turn.part =
      string.match(line, '^(.- < %l* ?)(%d+)x?(%d*)( %d+%+%d+ )(%d+)(/.*)$')
    if turn.head then turns[#turns + 1] = turn end
    if QUIET[turn.head] then quiet = quiet + 1 end
  end
  for at = #turns, 2, -1 do
    local turn, above = turns[at], turns[at - 1]
    if bytes > BYTES_KEPT and quiet > QUIET_KEPT and QUIET[turn.head] then
      bytes, quiet, above.ms = bytes - turn.bytes, quiet - 1, above.ms + turn.ms
      if QUIET[above.head] then above.head, above.alike = 'quiet < ', (tonumber(above.alike) or 1) + (tonumber(turn.alike) or 1) end
      table.remove(turns, at)
    end
  end
  local known, numbers, count, text = {}, {}, 0, {}
  for name in string.gmatch(names, '%S+') do known[#known + 1] = name end
  names, bytes = '', #ended_ms
  for at, turn in ipairs(turns) do -- the oldest that find no room go, and the names that no line has any more
    local own, name = numbers[turn.name], ''
    if not own then own, name = count + 1, ' ' .. (known[tonumber(turn.name)] or '?') end
    local line = turn.head .. turn.ms .. (turn.alike == '' and '' or 'x' .. turn.alike) .. turn.times .. own .. turn.part
    bytes = bytes + #line + 1 + #name
    if bytes > BYTES_MAX and at > 1 then break end
    numbers[turn.name], count, names, text[at] = own, math.max(count, own), names .. name, line
  end
  return string.sub(ended_ms .. names .. '\n' .. table.concat(text, '\n'), 1, BYTES_MAX)
end

-- A turn is over: of its lock, the holder and what stands behind the nonce. Turns that end alike stand on one line, so that they do not
-- push out the others. What is no text of ours is dropped.
local function end_turn(queue, key, holder, lock, verdict, did, now)
  local was, turns, after_ms = pasts[queue][key], '', 0
  local since_ms, why_ms, triggers = string.match(lock, '^since_ms=(%d+) why=(%d+) (%d+ [^,]*)')
  if not since_ms then since_ms, why_ms, triggers = now, now, '0 unknown' end
  triggers = string.gsub(triggers, '^(%d+ )set (%S+)$', '%1%2')
  local from, to = string.find(triggers, '/' .. key, 1, true)
  if from then triggers = string.sub(triggers, 1, from) .. '%' .. string.sub(triggers, to + 1) end
  local ended_ms, names, lines = string.match(#was > BYTES_MAX and '' or was, '^(%d+)( [^\n]*)\n(.*)$')
  if ended_ms then after_ms = math.max(0, now - ended_ms) else names, lines = '', '' end
  local head = string.sub(did == '' and '-' or did, 1, DID_BYTES_MAX) .. ' < ' .. (verdict == 'ok' and '' or verdict .. ' ')
  if string.sub(lines, 1, #head) == head then
    local before_ms, alike, rest = string.match(lines, '^(%d+)x?(%d*) [^\n]*\n?()', #head + 1)
    if before_ms then
      after_ms, turns, lines = after_ms + before_ms, 'x' .. (tonumber(alike) or 1) + 1, string.sub(lines, rest)
    end
  end
  local name, part
  name, part, names = name_in(names, holder)
  local times = math.max(0, since_ms - why_ms) .. '+' .. math.max(0, now - since_ms)
  local line = head .. after_ms .. turns .. ' ' .. times .. ' ' .. name .. '/' .. part .. ' ' .. triggers
  lines = lines == '' and line or line .. '\n' .. lines
  local text = now .. names .. '\n' .. lines
  if #text > BYTES_MAX then text = shortened(number(now), names, lines) end
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
local function lose_turn(queue, key, holder, lock, ended, now)
  local since = string.match(lock or '', ' nonce=%S+ (.*)$') or ''
  if lock then end_turn(queue, key, holder, since, 'lost', ended, now) end
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
