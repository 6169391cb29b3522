-- claim: take the next keys of the first queue that has any (by weight, where controllers have one), lock them, and hand over all that a turn reads.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED phase holders waiters queue:wake leases watermark watermark_at generation queue:stream queue:state queue:locks queue:crashes
-- DERIVED queue:backlog queue:rounds queue:passed queue:needs queue:unsettled queue:expect:key queue:rate holder:name tick no_reclaim_until
-- DERIVED cache:resource:generation index:resource:generation:entry summary:resource:generation:entry
-- DERIVED changes:resource:generation changes_at:resource:generation apart:resource:generation pauses
-- DERIVED queue:held lone limited:namespace limits timer strides
-- ARGV[1] holder  ARGV[2] nonce  ARGV[3] lease ms  ARGV[4] drain ms: how long a write that was sent before may still land
-- ARGV[5] keys at most  ARGV[6] bytes at most (one key is always taken)
-- ARGV[7] "", or "beside [namespace/ ...]": turns of the holder are under way, and many of these namespaces
-- ARGV[8] 0, or from how many children in all on they are left to be read without a script; owners with less than a quarter come whole
-- ARGV[9..] one a queue, what a turn reads: "queue owners [rate=keys a second] [children/index/uid|counts|name|wanted ...]
--   [resource/version/mirror ...]"
-- Returns: {"OK", queue, {resource, rv, age ms, ...}, {{resource, version, 1 when full, or 2: unread, {id, value, ...}, {gone id, ...}}, ...}, now ms,
--           {"first entry #class" of a child, what ends its blob before its uid and is left out of it, ...},
--           {key, owner, ms it was queued, why it was queued, {"count text", ...} of the classes, in place of children and what lies apart,
--            {{child, ...} a resource, in the order they are first named}, {expectations}, min_rv, unsettled, crashes,
--            what lies apart from the owner, {{resource, generation, index entry, {id, ...}} of children left to be read, ...}}, ...}
--            where it has counts, and nothing of the last lines, they are left out
--          | {"EMPTY"} | {"SERVED"} (as EMPTY, to a claim beside others: a worker of the same queues waits, and claims next)
--          | {"ALONE"} (a key is queued that is claimed alone: the holder is to claim beside its turns no more)
--          | {"LIMITED"} (keys are queued, but the rates of their queues let none go) | {"WAIT", phase, or "PAUSED"}
--          | {"UNKNOWN"} (not registered) | {"DRAIN"} (it is to leave: drain.lua) | {"STALE"}
-- A write that was sent before this claim gets the time until which it may land, "until_ms=..". A claim after that time writes "over".
-- Invariant: a claimed key was queued, is running, has one lock, one lease and no place in its queue. A key that crashed a worker is
--   claimed alone, and not beside other turns.
-- include: cache queue locks changes scopes weights pauses limits summary
local holder, nonce, lease_ms, drain_ms = ARGV[1], ARGV[2], whole(ARGV[3]), whole(ARGV[4])
local keys_max, bytes_max, load_min = whole(ARGV[5]), whole(ARGV[6]), whole(ARGV[8])
local registered = redis.call('HGET', base .. 'holders', holder)
if registered and string.sub(registered, -6) == ' drain' then return {'DRAIN'} end
local phase = redis.call('GET', base .. 'phase') or 'DRAIN'
if phase ~= 'OPEN' then return {'WAIT', phase} end
local paused = paused_scopes()
if paused and paused['all'] then return {'WAIT', 'PAUSED'} end
if not registered then return {'UNKNOWN'} end
local now = now_ms()
local waiters, leases, watermarks, own_tasks = base .. 'waiters', base .. 'leases', base .. 'watermark', base .. 'holder:' .. holder

-- How many keys a queue with a rate lets go now. The bucket holds what the rate brings in a second, but at least one key.
local function tokens_of(queue, rate)
  local bucket, most = base .. queue .. ':rate', math.max(1, rate)
  local state = redis.call('HMGET', bucket, 'tokens', 'at_ms')
  local at = tonumber(state[2]) or now
  if at > now then redis.call('HSET', bucket, 'at_ms', number(now)) end -- time went back: do not wait for that to come again
  return math.min(most, (tonumber(state[1]) or most) + math.max(0, now - at) * rate / 1000)
end

-- Whether a worker of the same queues waits for a token: its next claim is of what comes next, whoever else asks.
local function is_served()
  local who = redis.call('ZRANGEBYSCORE', waiters, number(now), '+inf', 'LIMIT', 0, 1)[1]
  local as = who and redis.call('HGET', base .. 'holders', who)
  return as and string.match(as, ' queues=.*$') == string.match(registered, ' queues=.*$')
end

-- A key that crashed a worker is alone. One whose lease ended once (0) is not: its whole container went, with other keys.
local function is_alone(crashes) return (tonumber(crashes) or 0) > 0 end

-- Where such a key is queued, one worker with turns under way is told to let them end, and takes the key then. The others go on. If that
-- worker does not come to it within the drain, or has died, another one is told.
local function lets_its_turns_end(queue)
  local lone = base .. 'lone'
  local who, until_ms = string.match(redis.call('GET', lone) or '', '^(%S+) (%d+) %S+$')
  local left_ms = who and tonumber(until_ms) - now or 0
  if left_ms > 0 and left_ms <= drain_ms and redis.call('HEXISTS', base .. 'holders', who) == 1 then return who == holder end
  redis.call('SET', lone, holder .. ' ' .. number(now + drain_ms) .. ' ' .. queue)
  return true
end

-- The arguments in the order in which they are asked. A worker that has let its turns end for a key asks the queue of that key first.
local function lone_first(order)
  local who, queue = string.match(redis.call('GET', base .. 'lone') or '', '^(%S+) %d+ (%S+)$')
  if who ~= holder then return order end
  local asked = {}
  for at = 9, #ARGV do
    local i = order and order[at - 8] or at
    table.insert(asked, string.match(ARGV[i], '^%S*') == queue and 1 or #asked + 1, i)
  end
  return asked
end

-- Of the next entries of a queue, those that may be claimed beside other turns. The others are passed over: they stay in their places.
local BESIDE_LOOK = 64
local beside, crowded, passed_over, first_passed_over = ARGV[7] ~= '', {}
for namespace in string.gmatch(ARGV[7], ' ([^ ]*)/') do crowded[namespace] = true end
local function entries_beside(queue, entries)
  local names, free, lone_key = {}, {}, false
  passed_over, first_passed_over = false, nil
  for i, entry in ipairs(entries) do names[i] = entry[2][2] end
  local crashes = #names > 0 and values_of(base .. queue .. ':crashes', names) or {}
  for i, entry in ipairs(entries) do
    local alone = is_alone(crashes[i])
    lone_key = lone_key or alone
    if alone or crowded[string.match(names[i], '^(.*)/') or ''] then
      passed_over, first_passed_over = true, first_passed_over or entry[3]
    elseif #free < keys_max then
      free[#free + 1] = entry
    end
  end
  return free, lone_key
end

local OBJECT_BYTES = 300 -- a usual projection; the estimate only bounds a batch
local queue, owners, words, entries, rate, tokens, limited
local look_at, order = beside and BESIDE_LOOK or keys_max, paused and order_by_weight(paused, 9)
local asked = not beside and lone_first(order) or order
for at = 9, #ARGV do
  local i = asked and asked[at - 8] or at
  queue, owners, words = string.match(ARGV[i], '^(%S+) (%S+)(.*)$')
  if not queue then error('claim: bad queue ' .. ARGV[i]) end
  rate = string.match(words, '^ rate=(%S+)')
  if rate then
    words, rate = string.match(words, '^ %S+(.*)$'), tonumber(rate)
    if not rate or not (rate > 0) then error('claim: bad rate ' .. ARGV[i]) end
  end
  if paused and paused['queue ' .. queue] then
    entries = {}
  elseif paused then
    redis.call('ZREM', waiters, holder) -- first: a removal may run when memory is full
    local again
    entries, again = unpaused_entries(paused, queue, look_at, now)
    if again then came[queue] = 1 end
  else
    entries = next_entries(queue, look_at)
  end
  if beside then
    local lone_key
    entries, lone_key = entries_beside(queue, entries)
    if lone_key and lets_its_turns_end(queue) then
      redis.call('ZREM', waiters, holder) -- it does not wait for a token
      return {'ALONE'}
    end
  end
  rate = paused and number_in(paused['rate ' .. queue], 'rate') or rate
  if rate and #entries > 0 then
    tokens = tokens_of(queue, rate)
    for e = #entries, math.max(0, math.floor(tokens + 1e-6)) + 1, -1 do entries[e] = nil end
    limited = limited or #entries == 0
  end
  if #entries > 0 then break end
end
if #entries == 0 then
  redis.call('ZREM', waiters, holder) -- first: a removal may run when memory is full
  if not beside then redis.call('ZADD', waiters, number(now + 1500), holder) end -- else it does not wait for a token
  wake(now)
  return {limited and 'LIMITED' or beside and is_served() and 'SERVED' or 'EMPTY'}
end
local stream, states, locks = base .. queue .. ':stream', base .. queue .. ':state', base .. queue .. ':locks'
local min_rvs = base .. queue .. ':needs'

local gens, marks = {}, {}
local function gen_of(resource)
  if not gens[resource] then
    gens[resource] = generation(resource)
    local at = tonumber(redis.call('HGET', base .. 'watermark_at', resource) or now)
    marks[#marks + 1] = resource
    marks[#marks + 1] = redis.call('HGET', watermarks, resource) or ''
    marks[#marks + 1] = number(math.max(0, now - at))
  end
  return gens[resource]
end
gen_of(owners)

local MIRROR_MAX = 1000 -- mirrored objects that a claim hands over, if its caller can read them itself (load)
local WORDS = {uid = true, counts = true, name = true, wanted = true}
local children, groups, group_of, deltas = {}, 0, {}, {}
for word in string.gmatch(words, '%S+') do
  local resource, index, by = string.match(word, '^([^/]+)/(.+)/([^/]+)$')
  if by == 'mirror' then
    deltas[#deltas + 1] = changes_since(resource, gen_of(resource), index, load_min > 0 and MIRROR_MAX or math.huge)
  elseif WORDS[by] then
    if not group_of[resource] then groups = groups + 1 group_of[resource] = groups end
    children[#children + 1] = {
      by = by, group = group_of[resource], objects = objects_key(resource, gen_of(resource)),
      set = index_key(resource, gen_of(resource), index .. '='), summary = summary_key(resource, gen_of(resource), index .. '='),
      resource = resource, gen = gen_of(resource), entry = index .. '=',
    }
  else
    error('claim: bad word ' .. word)
  end
end

local names, expects, expected = {}, {}, base .. queue .. ':expect:'
for i, entry in ipairs(entries) do
  local key = entry[2][2]
  names[i], expects[i] = key, expected .. key
end
local crashes = values_of(base .. queue .. ':crashes', names)
for _, count in pairs(crashes) do
  if count and not tonumber(count) then error('damaged: crashes of a key') end
end
local min_rv = values_of(min_rvs, names)
local unsettled = values_of(base .. queue .. ':unsettled', names)
local queued = redis.call('HMGET', states, unpack(names))
local owner_values = redis.call('HMGET', objects_key(owners, gens[owners]), unpack(names))
local any_expected = redis.call('EXISTS', unpack(expects)) > 0
local apart, parts, whole_owner = {}, {}, whole_of(owners, gens[owners])
for i, value in pairs(owner_values) do
  if value and string.find(value, ' #', 1, true) then owner_values[i] = whole_owner(value) end -- it may be of a class
end
-- These are written below and were not read above. One of a wrong type must fail here.
redis.call('HLEN', locks)
redis.call('ZCARD', leases)
redis.call('SCARD', own_tasks)
if not entries[#entries][1] then redis.call('ZCARD', base .. queue .. ':rounds') end

local known, NONE = {}, {}
local function members_of(set)
  if not known[set] then known[set] = redis.call('HKEYS', set) end
  return known[set]
end

local lengths = {}
local function length_of(set)
  if not lengths[set] then lengths[set] = redis.call('HLEN', set) end
  return lengths[set]
end

-- The ids that the owner's words ask for: of the words with "?" the one with the fewest ids, and each word with "+".
-- "a|b" stands for both places together.
local function wanted_by(owner, child, namespace)
  if length_of(child.set .. namespace) == 0 then return NONE end -- an id under a place in a namespace is under the namespace too
  local sets, least, words = {}, nil, ' ' .. index_words(owner)
  for word in string.gmatch(words, ' %?(%S+)') do
    local found, size = {}, 0
    for place in string.gmatch(word, '[^|]+') do
      found[#found + 1] = child.set .. place
      size = size + length_of(child.set .. place)
    end
    if not least or size < least then sets, least = found, size end
  end
  for place in string.gmatch(words, ' %+(%S+)') do sets[#sets + 1] = child.set .. place end
  local ids, seen = {}, {}
  for _, set in ipairs(sets) do
    for _, id in ipairs(length_of(set) > 0 and members_of(set) or NONE) do
      if not seen[id] then seen[id], ids[#ids + 1] = true, id end
    end
  end
  return ids
end

local members, uids, expectations, waiting, counts, taken, bytes = {}, {}, {}, {}, {}, 0, 0

-- A revision that the cache has passed is read. Only those that still wait are handed over.
local function waiting_of(i)
  if not min_rv[i] then return '' end
  local words = {}
  for resource, rv in each_min_rv(min_rv[i]) do
    local mark = redis.call('HGET', watermarks, resource)
    if not mark or newer(rv, mark) then words[#words + 1] = resource .. '=' .. rv end
  end
  return table.concat(words, ' ')
end

-- The counts of an owner's children, where a turn is all but certain to have nothing to do about them. `others`: how many objects it
-- is handed beside them.
local function counts_of(i, child, uid, others)
  if others > 0 or #expectations[i] > 0 or waiting[i] ~= '' then return NONE end
  local asked = asked_in(owner_values[i])
  return asked and summary_at_rest(child.summary .. uid, child.set .. uid, tonumber(asked)) or NONE
end

-- What lies apart from an owner. Many have the same.
local function part_of(owner)
  local name = apart_in(index_words(owner))
  if not name then return '' end
  parts[name] = parts[name] or part_in(redis.call('HGET', apart_key(owners, gens[owners]), name) or '')
  return parts[name]
end

-- Choose before taking: a large owner, or one that crashed its worker, goes alone.
for i, key in ipairs(names) do
  if i > 1 and (is_alone(crashes[i]) or is_alone(crashes[1])) then break end
  local owner, mine, others = owner_values[i], {}, 0
  local slash = string.find(key, '/', 1, true)
  if slash and string.find(key, '/', slash + 1, true) then slash = string.find(key, '/[^/]*$') end
  local namespace, name = slash and string.sub(key, 1, slash - 1), slash and string.sub(key, slash + 1)
  local uid = owner and uid_in(owner)
  expectations[i], waiting[i], counts[i] = any_expected and redis.call('HGETALL', expects[i]) or NONE, waiting_of(i), NONE
  for c = #children, 1, -1 do -- those that may come as counts are named first: whether they do depends on the others
    local child = children[c]
    local value = child.by == 'name' and (name or key) or uid
    if child.by == 'counts' and uid then counts[i] = counts_of(i, child, uid, others) end
    if child.by == 'wanted' then mine[c] = owner and wanted_by(owner, child, namespace or '') or NONE
    else mine[c] = value and #counts[i] == 0 and members_of(child.set .. value) or NONE end
    others = others + #mine[c]
  end
  apart[i] = owner and #counts[i] == 0 and part_of(owner) or '' -- a turn over counts all but never asks for it
  local size = (owner and #owner + #apart[i] or 0) + OBJECT_BYTES * others
  if i > 1 and bytes + size > bytes_max then break end
  members[i], uids[i], taken, bytes = mine, uid, i, bytes + size
end

-- Children that the caller reads without a script, by their ids (load): that is a third of the work for Redis, and no long call. The
-- texts of their classes are read as a whole, so there must be few.
local unloaded, many = {}, 0
for i = 1, load_min > 0 and taken or 0 do
  for c, ids in ipairs(members[i]) do
    local child = children[c]
    if (child.by == 'uid' or child.by == 'counts') and #ids > 0 and #ids * 4 >= load_min
      and redis.call('HLEN', child.summary .. uids[i]) <= CLASSES_MAX then
      unloaded[#unloaded + 1], many = {i, c}, many + #ids
    end
  end
end
local left = {}
for _, place in ipairs(many >= load_min and unloaded or NONE) do
  local i, c = unpack(place)
  local child = children[c]
  left[i] = left[i] or {}
  table.insert(left[i], {child.resource, child.gen, child.entry .. uids[i], members[i][c]})
  members[i][c] = NONE
end

local of_backlog = {}
for i = 1, taken do
  if not entries[i][1] then of_backlog[#of_backlog + 1] = names[i] end
end
local endings = {}
local reply, new_states, new_locks, new_leases, tasks, whys = {'OK', queue, marks, deltas, now, endings}, {}, {}, {}, {}, {}
local lock = 'holder=' .. holder .. ' nonce=' .. nonce .. ' since_ms=' .. number(now) .. ' why='
local lease = number(now + lease_ms)
for i = 1, taken do
  local key = names[i]
  tasks[i], whys[i] = queue .. ':' .. key, string.sub(queued[i] or '', 8)
  new_states[2 * i - 1], new_states[2 * i] = key, 'running'
  new_locks[2 * i - 1], new_locks[2 * i] = key, lock .. whys[i]
end
-- Most often keys come in the order of their names. A small zset is a list, and one that comes before all others finds its place at once.
for i = taken, 1, -1 do new_leases[#new_leases + 1], new_leases[#new_leases + 2] = lease, tasks[i] end
redis.call('ZREM', waiters, holder)
if rate then
  redis.call('HSET', base .. queue .. ':rate', 'tokens', string.format('%.4f', tokens - taken), 'at_ms', number(now))
end
-- XREADGROUP is there for people: XINFO shows how long each consumer has been idle, and how much the group has read. Nothing is pending
-- after it (NOACK). The taken entries are the oldest, so XTRIM cuts off all but the last: XDEL looks for each entry by itself, which
-- took 3 us of the 24 of a key.
local of_stream = taken - #of_backlog
if of_stream > 0 then
  local last = entries[of_stream][1]
  redis.call('XREADGROUP', 'GROUP', 'workers', holder, 'COUNT', of_stream, 'NOACK', 'STREAMS', stream, '>')
  if passed_over then
    for i = 1, of_stream - 1 do redis.call('XDEL', stream, entries[i][1]) end
  elseif of_stream > 1 then
    redis.call('XTRIM', stream, 'MINID', last)
  end
  redis.call('XDEL', stream, last)
end
if #of_backlog > 0 then
  leave_backlog(queue, of_backlog, math.min(entries[taken][3], first_passed_over or entries[taken][3]))
end
if order then advance_stride(paused, queue, taken) end
for i = 1, paused and taken or 0 do turn_begins(paused, tasks[i], namespace_of(names[i]), now) end
if is_alone(crashes[1]) then redis.call('DEL', base .. 'lone') end
redis.call('HSET', states, unpack(new_states))
redis.call('HSET', locks, unpack(new_locks))
redis.call('ZADD', leases, unpack(new_leases))
redis.call('SADD', own_tasks, unpack(tasks))

-- The times of expectations end by Redis's clock. None ends while the clock jumps, nor for as long again after a jump was noticed.
local steady
local function times_end()
  if steady == nil then
    local tick = tonumber(redis.call('GET', base .. 'tick') or now)
    local quiet_from = tonumber(redis.call('GET', base .. 'no_reclaim_until') or -drain_ms) + drain_ms
    steady = now >= tick and now - tick <= CLOCK_JUMP_MS and now >= quiet_from
  end
  return steady
end

-- A write sent before this claim lands until now + drain, or never. A later send is announced anew; then its entry has no time again.
local function timed(key, expect, expected)
  local sets, anew = {}, {}
  local function set(field, value) sets[#sets + 1], sets[#sets + 2] = field, value end
  for f = 1, #expect, 2 do
    local field, value = expect[f], expect[f + 1]
    local reserved = string.sub(field, 1, 9) == 'reserved '
    if reserved or (string.sub(value, 1, 8) == 'pending ' and not note(field)) then
      local head, until_ms = string.match(value, '^(.-)until_ms=(%d+)$')
      if until_ms and tonumber(until_ms) <= now and times_end() then set(field, head .. 'over')
      elseif until_ms and tonumber(until_ms) > now + drain_ms then set(field, head .. 'until_ms=' .. number(now + drain_ms))
      elseif not until_ms and not string.find(' ' .. value, ' over$') then -- a word: names of nodes may end so
        set(field, (reserved and '' or value .. ' ') .. 'until_ms=' .. number(now + drain_ms))
        local name = string.match(field, '^create (.+)$') -- the name stays reserved, even after the entry got its answer
        local node = string.match(value, ' (node=%S+)')
        if name then anew['reserved ' .. name] = (node and node .. ' ' or '') .. 'until_ms=' .. number(now + drain_ms) end
      end
    end
  end
  for field, value in pairs(anew) do set(field, value) end -- last: the name was sent again, so its earlier time no longer counts
  for at = 1, #sets, 4000 do redis.call('HSET', expected, unpack(sets, at, math.min(at + 3999, #sets))) end
  keep_expectations(queue, key, 0)
  return #sets > 0 and redis.call('HGETALL', expected) or expect
end

-- The reader puts its children together: of thousands of pods, few differ in what ends them. Their second lines differ where they are
-- looked up by node; what counts of these is the first entry and the class.
local noted = {}
local function note_ending(child, value)
  local line = index_words(value)
  if noted[line] then return end
  noted[line] = true
  local entries, class = without_class(line)
  local of_class = class and first_entry(entries) .. ' #' .. class
  if not class or (noted[of_class] and of_class ~= line) then return end
  noted[of_class] = true
  local ending = ending_of(child.resource, child.gen, of_class)
  if ending then endings[#endings + 1], endings[#endings + 2] = of_class, ending end
end

-- By resource, in the order in which they are first named.
local function children_of(i)
  local found = {}
  for group = 1, groups do found[group] = {} end
  for c, ids_of in ipairs(members[i]) do
    local child, into = children[c], found[children[c].group]
    for at = 1, #ids_of, 5000 do -- unpack fails near 8000 arguments
      for _, value in ipairs(redis.call('HMGET', child.objects, unpack(ids_of, at, math.min(at + 4999, #ids_of)))) do
        if value then
          note_ending(child, value)
          into[#into + 1] = value
        end
      end
    end
  end
  return found
end

for i = 1, taken do
  local key = names[i]
  if min_rv[i] and waiting[i] == '' then redis.call('HDEL', min_rvs, key) end
  -- An entry's id begins with the ms at which it was added, and a place in the backlog ends with their last digits.
  local id, place = entries[i][1], entries[i][3]
  local waited_ms = id and math.max(0, now - tonumber(string.match(id, '^%d+'))) or (now - place) % SCALE
  if waited_ms ~= waited_ms then waited_ms = 0 end -- no place of ours
  if #counts[i] > 0 and not unsettled[i] and not crashes[i] then
    reply[6 + i] = {key, owner_values[i], waited_ms, whys[i], counts[i]}
  else
    local expect = expectations[i]
    if #expect > 0 then expect = timed(key, expect, expects[i]) end
    reply[6 + i] = {
      key, owner_values[i] or '', waited_ms, whys[i], counts[i], children_of(i), expect, waiting[i], unsettled[i] or '',
      tonumber(crashes[i] or 0), apart[i], left[i],
    }
  end
end
if #entries > taken then came[queue] = 1 end
wake(now)
return reply
