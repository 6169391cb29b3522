-- include: queue locks
-- What a key remembers of its turns, for people; nothing is decided by it. It lies in two texts of the same form, the newest turns first.
-- Every turn reads and writes queue:turns, so it is short. When it is full, all its lines but the newest move to queue:history.
-- A text has a line "ended_ms name ..": when its newest turn ended, and the names of workers without their last part. Then a line for each
-- turn, or for several alike in a row. In queue:turns the line begins "told_ms ended_ms xNN name ..": NN more turns, like that of the newest
-- line, which was told at the first time, ended until the second. Most turns change these alone. The lines are:
--   what it did < [verdict ]ms since the line below ended[xTURNS] WAITED+TOOK NAME/last part EVENTS first trigger
-- Left out: the verdict "ok", and "set " of a trigger. NAME counts the names. "%" in a trigger is the key: no name of the API has one.
local byte, find, match, sub = string.byte, string.find, string.match, string.sub
local BYTES_MAX, DID_BYTES_MAX = 1000, 300 -- bytes of the two together
local TURNS_BYTES = 144 -- of queue:turns, where that has several lines. queue:history has to do without them, used or not
-- Quiet: a turn that wrote nothing but a status. Of a text that is too long, all but the newest of these are folded, or go.
local BYTES_KEPT, QUIET_KEPT = 600, 4
local NAMES_BYTES_MAX = 200 -- above it, names that no line has any more are looked for
local FLEET_BYTES_MAX = 67108864
local AGE_MAX_MS, PERIOD_MS = 86400000, 600000 -- ages are kept by the period, sizes by the block: most turns then need not write them
local BLOCK_BYTES, OVERHEAD_BYTES = 64, 150 -- overhead: about what Redis needs for a text beside itself and its key, twice

-- Of turns alike, one is told anew after ten of them and so many ms, or after a hundred.
local TOLD_MS, TOLD_TURNS, TOLD_TURNS_MAX = 10000, 'x10', 100

-- Returns the newest turns of these keys. Call it before the first write: a key of a wrong type must fail there.
local news, packed, ages, grown_bytes = {}, {}, {}, 0
local function read_turns(queue, keys)
  redis.call('HLEN', base .. queue .. ':history')
  redis.call('ZCARD', base .. 'histories')
  return redis.call('HMGET', base .. queue .. ':turns', unpack(keys))
end

local function size_of(queue, key, text)
  return text == '' and 0 or OVERHEAD_BYTES + 2 * (#queue + #key) + math.ceil(#text / BLOCK_BYTES) * BLOCK_BYTES
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

-- Numbers as text, none below 0: those of the turns that end together are much alike, and making a text is slow.
local texts = {}
local function text_of(value)
  local text = texts[value]
  if not text then text = string.format('%d', math.max(0, value)) texts[value] = text end
  return text
end

-- The count after "xNN"; false after the last, and after what is no such text. Two digits: so a text does not change its size.
local counts = {}
local function next_count(text)
  local count = counts[text]
  if count == nil then
    local more = tonumber(match(text, '^x(%d%d)$') or TOLD_TURNS_MAX) + 1
    count = more < TOLD_TURNS_MAX and string.format('x%02d', more)
    counts[text] = count
  end
  return count
end

-- The number of a name among the first line's names, and these with it.
local function name_in(names, name)
  if names == name or names == '' then return 1, name end
  local at = 0
  for each in string.gmatch(names, ' %S+') do
    at = at + 1
    if each == name then return at, names end
  end
  return at + 1, names .. name
end

local QUIET = {['-'] = true, status = true, quiet = true}
local function quiet(line) return QUIET[string.match(line, '^(%S+) < %d')] end

-- Let lines count their names among these, with those that they add. Returns them. Until now they counted those of the first line "from".
local function renumbered(lines, first, from, names)
  local known = {}
  for name in string.gmatch(from, ' %S+') do known[#known + 1] = name end
  for at = first, #lines do
    local head, old, rest = string.match(lines[at], '^(.- < %l* ?%d+x?%d* %d+%+%d+ )(%d+)(/.*)$')
    if head then
      local new
      new, names = name_in(names, known[tonumber(old)] or ' ?')
      lines[at] = head .. new .. rest
    end
  end
  return names
end

-- A text that has become too long, without some of its lines. A line that goes leaves its time to the line above, and its number of
-- turns if that is quiet too.
local function shortened(text, bytes_max)
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
  if #lines[1] > NAMES_BYTES_MAX then lines[1] = string.match(lines[1], '^%d+') .. renumbered(lines, 2, lines[1], '') end
  bytes = #table.concat(lines, '\n')
  while bytes > bytes_max and #lines > 2 do bytes = bytes - #table.remove(lines) - 1 end
  return string.sub(table.concat(lines, '\n'), 1, bytes_max)
end

-- The text of queue:turns is full: these lines of it, with its names, move. What is no text of ours is dropped.
local function pack(queue, key, names, moved, ended_ms, bytes_max)
  local of = packed[queue] or {}
  packed[queue] = of
  local was = of[key] or redis.call('HGET', base .. queue .. ':history', key) or ''
  local was_ended_ms, was_names, older = string.match(#was <= BYTES_MAX and was or '', '^(%d+)( [^\n]*)\n(.+)$')
  local lines = {}
  for line in string.gmatch(moved, '[^\n]+') do lines[#lines + 1] = line end
  if #lines == 0 then ended_ms = was_ended_ms end
  names = renumbered(lines, 1, names, was_names or '')
  lines[#lines + 1] = older
  local history = #lines > 0 and ended_ms .. names .. '\n' .. table.concat(lines, '\n') or ''
  if #history > bytes_max then history = shortened(history, bytes_max) end
  if history == was then return end
  grown_bytes = grown_bytes + size_of(queue, key, history) - size_of(queue, key, was)
  of[key] = history
end

-- The triggers of a lock, from their number on, as a line has them: the first alone.
local function first_trigger(lock, from, events, key)
  local to = (find(lock, ',', from, true) or #lock + 1) - 1
  if sub(lock, from, from + 3) == 'set ' and to > from + 3 then
    local blank = find(lock, ' ', from + 4, true)
    if not blank or blank > to then from = from + 4 end
  end
  local key_from, key_to = find(lock, '/' .. key, from, true)
  if not key_from or key_to > to then return events .. sub(lock, from, to) end
  return events .. sub(lock, from, key_from) .. '%' .. sub(lock, key_to + 1, to)
end

-- The text after one more turn that ended like its newest line; nil where that is to be told anew. Times of 13 digits compare as text.
local now_text, period_text, told_text
local function repeated(was, head, now)
  local from = find(was, '\n', 32, true)
  if not from or find(was, head, from + 1, true) ~= from + 1 or (byte(was, from + 1 + #head) or 58) > 57 then return end
  if not now_text then
    now_text, period_text, told_text = text_of(now) .. ' ', text_of(period_of(now)), text_of(now - TOLD_MS) .. ' '
  end
  local told, count = sub(was, 1, 14), next_count(sub(was, 29, 31))
  if not count or told > now_text or told < period_text or (count >= TOLD_TURNS and told <= told_text) then return end
  return told .. now_text .. count .. sub(was, 32)
end

-- A turn is over, of a key whose newest turns were these; of its lock the holder, and all of it. Turns that end alike stand on one line,
-- so that they do not push out the others. What is no text of ours is dropped. Most turns do nothing, like the one before: this must be
-- fast for them.
local function end_turn(queue, key, was, holder, lock, verdict, did, now)
  local head = did == '' and '- < ' or sub(did, 1, DID_BYTES_MAX) .. ' < '
  if verdict ~= 'ok' then head = head .. verdict .. ' ' end
  local of = news[queue] or {}
  news[queue] = of
  local again = repeated(was, head, now)
  if again then
    of[#of + 1], of[#of + 2] = key, again
    return
  end
  local turns, after_ms, rest = '', 0, ''
  local since_ms, why_ms, events, trigger_from = match(lock, '^holder=%S+ nonce=%S+ since_ms=(%d+) why=(%d+) (%d+ )()')
  local trigger = since_ms and first_trigger(lock, trigger_from, events, key) or '0 unknown'
  local told_ms, ended_ms, more, names, from = match(#was <= BYTES_MAX and was or '', '^(%d+) (%d+) x(%d+)( [^\n]*)\n()')
  if told_ms then
    local to = find(was, '\n', from, true) or #was + 1
    local before, before_ms, alike, told = match(sub(was, from, to - 1), '^(.- < %l* ?)(%d+)x?(%d*)( %d+%+%d+ %d+/.*)$')
    after_ms, rest = math.max(0, now - ended_ms), sub(was, to)
    if before then
      before_ms, alike = before_ms + ended_ms - told_ms, (tonumber(alike) or 1) + more
      if before == head then
        after_ms, turns = after_ms + before_ms, 'x' .. text_of(alike + 1)
      else
        rest = '\n' .. before .. text_of(before_ms) .. (alike > 1 and 'x' .. text_of(alike) or '') .. told .. rest
      end
    end
  end
  local name, part = split_name(holder)
  local at
  at, names = name_in(rest == '' and '' or names, name)
  local waited, took = text_of((since_ms or now) - (why_ms or now)), text_of(now - (since_ms or now))
  local first = text_of(now) .. ' ' .. text_of(now) .. ' x00'
  local text = first .. names .. '\n' -- in one go: each concatenation costs a copy
    .. head .. text_of(after_ms) .. turns .. ' ' .. waited .. '+' .. took .. ' ' .. text_of(at) .. '/' .. part .. ' ' .. trigger .. rest
  if #text > TURNS_BYTES and #text > #was then
    local lines = {match(text, '\n([^\n]*)')}
    text = sub(first .. renumbered(lines, 1, names, '') .. '\n' .. lines[1], 1, BYTES_MAX)
    pack(queue, key, names, rest, text_of(now - after_ms), math.max(0, BYTES_MAX - math.max(TURNS_BYTES, #text)))
  end
  of[#of + 1], of[#of + 2] = key, text
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
      for _, half in ipairs({':turns', ':history'}) do
        local text = redis.pcall('HGET', base .. queue .. half, key) -- a key of a wrong type is left for others to tell of
        redis.pcall('HDEL', base .. queue .. half, key)
        bytes = bytes + size_of(queue, key, type(text) == 'string' and text or '')
      end
    end
  end
  return bytes
end

-- The holder of a lock is gone, or was too slow. Returns why its key is queued, which it is to be, or parked: with the time of the lost
-- claim, from which the next one counts how long nobody worked on the key.
local function lose_turn(queue, key, was, holder, lock, ended, now)
  if lock then end_turn(queue, key, was, holder, lock, 'lost', ended, now) end
  local _, why = split_state(redis.call('HGET', base .. queue .. ':state', key))
  why = with_trigger(key, why, 'lost ' .. holder .. ' ' .. (string.match(lock or '', ' nonce=%S+ since_ms=(%d+)') or number(now)), now)
  return why
end

-- Write down the turns that have ended. What was written longest ago goes first where a fleet has too much of it.
local function keep_turns()
  for queue, of in pairs(news) do redis.call('HSET', base .. queue .. ':turns', unpack(of)) end
  for queue, of in pairs(packed) do
    for key, text in pairs(of) do redis.call('HSET', base .. queue .. ':history', key, text) end
  end
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
    for _, queue in ipairs(queues) do redis.call('UNLINK', base .. queue .. ':turns', base .. queue .. ':history') end
    redis.call('UNLINK', base .. 'histories', base .. 'history_bytes')
    return
  end
  local old = redis.call('ZRANGEBYSCORE', base .. 'histories', '-inf', number(now - AGE_MAX_MS), 'LIMIT', 0, 200)
  if #old == 0 then return end
  redis.call('SET', base .. 'history_bytes', number(math.max(0, counted_bytes() - drop_histories(old))))
end
