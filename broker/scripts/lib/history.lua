-- include: queue locks
-- What a key remembers of its turns, for people; nothing is decided by it. First a line "ended_ms name ..": when the newest turn ended, and
-- the names of workers without their last part. Then a line for each turn, or for several alike in a row, the newest first:
--   what it did < [verdict ]ms since the line below ended[xTURNS] WAITED+TOOK NAME/last part EVENTS first trigger
-- Left out: the verdict "ok", and "set " of a trigger. NAME counts the names. "%" in a trigger is the key: no name of the API has one.
local BYTES_MAX, DID_BYTES_MAX = 1000, 300
-- Quiet: a turn that wrote nothing but a status. Of a text that is too long, all but the newest of these are folded, or go.
local BYTES_KEPT, QUIET_KEPT = 700, 4
local NAMES_BYTES_MAX = 200 -- above it, names that no line has any more are looked for
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

-- A worker's name without its last part, with a blank before it, and that part.
local split_names = {}
local function split_name(holder)
  local found = split_names[holder]
  if not found then
    local name, part = string.match(holder, '^(.*%-)([^-]*)$')
    found = {' ' .. (name or holder), part or ''}
    split_names[holder] = found
  end
  return found[1], found[2]
end

-- Numbers as text: those of the turns that end together are much alike, and making a text is slow.
local texts = {}
local function text_of(value)
  local text = texts[value]
  if not text then text = tostring(value) texts[value] = text end
  return text
end

-- The number of a name among the first line's names, and these with it.
local function name_in(names, name)
  if names == name then return 1, names end
  local at = 0
  for each in string.gmatch(names, ' %S+') do
    at = at + 1
    if each == name then return at, names end
  end
  return at + 1, names .. name
end

local function quiet(line)
  return string.find(line, '^%- < %d') or string.find(line, '^status < %d') or string.find(line, '^quiet < %d')
end

-- The first line's names, without those that no line has any more.
local function renumbered(lines)
  local known, numbers, count, names = {}, {}, 0, ''
  for name in string.gmatch(lines[1], ' %S+') do known[#known + 1] = name end
  for at = 2, #lines do
    local head, old, rest = string.match(lines[at], '^(.- < %l* ?%d+x?%d* %d+%+%d+ )(%d+)(/.*)$')
    if head and not numbers[old] then
      count = count + 1
      numbers[old], names = count, names .. (known[tonumber(old)] or ' ?')
    end
    if head then lines[at] = head .. numbers[old] .. rest end
  end
  lines[1] = string.match(lines[1], '^%d+') .. names
end

-- A text that has become too long, without some of its lines. A line that goes leaves its time to the line above, and its number of
-- turns if that is quiet too.
local function shortened(text)
  local lines, quiet_left, bytes = {}, 0, #text
  for line in string.gmatch(text, '[^\n]+') do
    lines[#lines + 1] = line
    if quiet(line) then quiet_left = quiet_left + 1 end
  end
  for at = #lines, 3, -1 do
    if bytes <= BYTES_KEPT or quiet_left <= QUIET_KEPT then break end
    if quiet(lines[at]) then
      local ms, turns = string.match(lines[at], ' < (%d+)x?(%d*)')
      local head, above_ms, above_turns, rest = string.match(lines[at - 1], '^(.- < %l* ?)(%d+)(x?%d*)( .*)$')
      if head then
        if quiet(lines[at - 1]) then
          head, above_turns = 'quiet < ', 'x' .. (tonumber(string.sub(above_turns, 2)) or 1) + (tonumber(turns) or 1)
        end
        lines[at - 1] = head .. above_ms + ms .. above_turns .. rest
      end
      bytes, quiet_left = bytes - #lines[at] - 1, quiet_left - 1
      table.remove(lines, at)
    end
  end
  if #lines[1] > NAMES_BYTES_MAX then renumbered(lines) end
  bytes = #table.concat(lines, '\n')
  while bytes > BYTES_MAX and #lines > 2 do bytes = bytes - #table.remove(lines) - 1 end
  return string.sub(table.concat(lines, '\n'), 1, BYTES_MAX)
end

-- A turn is over: of its lock, the holder and what stands behind the nonce. Turns that end alike stand on one line, so that they do not
-- push out the others. What is no text of ours is dropped.
local function end_turn(queue, key, holder, lock, verdict, did, now)
  local was, turns, after_ms = pasts[queue][key], '', 0
  local since_ms, why_ms, events, trigger = string.match(lock, '^since_ms=(%d+) why=(%d+) (%d+) ([^,]*)')
  if not since_ms then since_ms, why_ms, events, trigger = now, now, 0, 'unknown' end
  if string.sub(trigger, 1, 4) == 'set ' and #trigger > 4 and not string.find(trigger, ' ', 5, true) then trigger = string.sub(trigger, 5) end
  local key_from, key_to = string.find(trigger, '/' .. key, 1, true)
  if key_from then trigger = string.sub(trigger, 1, key_from) .. '%' .. string.sub(trigger, key_to + 1) end
  local first_to = #was <= BYTES_MAX and string.find(was, '\n', 1, true) or 0
  local ended_ms = first_to > 0 and string.match(was, '^(%d+) ') or nil
  local names = ended_ms and string.sub(was, #ended_ms + 1, first_to - 1) or ''
  local from = ended_ms and first_to + 1 or #was + 1 -- of the lines that stay
  if ended_ms then after_ms = math.max(0, now - ended_ms) end
  local head = string.sub(did == '' and '-' or did, 1, DID_BYTES_MAX) .. ' < ' .. (verdict == 'ok' and '' or verdict .. ' ')
  if string.sub(was, from, from + #head - 1) == head then
    local before_ms, alike = string.match(was, '^(%d+)x?(%d*) ', from + #head)
    if before_ms then
      after_ms, turns = after_ms + before_ms, 'x' .. text_of((tonumber(alike) or 1) + 1)
      from = (string.find(was, '\n', from, true) or #was) + 1
    end
  end
  local name, part = split_name(holder)
  local at
  at, names = name_in(names, name)
  local times = ' ' .. text_of(math.max(0, since_ms - why_ms)) .. '+' .. text_of(math.max(0, now - since_ms)) .. ' '
  local line = head .. text_of(after_ms) .. turns .. times .. text_of(at) .. '/' .. part .. ' ' .. events .. ' ' .. trigger
  local text = text_of(now) .. names .. '\n' .. line .. (from <= #was and '\n' .. string.sub(was, from) or '')
  if #text > BYTES_MAX then text = shortened(text) end
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
