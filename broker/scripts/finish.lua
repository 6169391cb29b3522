-- finish: end turns, each with its verdict and the answers to its writes.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED queue:locks leases holder:name queue:state queue:stream queue:backlog queue:rounds queue:expect:key queue:needs queue:unsettled
-- DERIVED queue:failures queue:crashes queue:bucket queue:delayed waiters holders queue:wake timer watermark unread:resource
-- DERIVED queue:turns queue:history histories history_bytes pauses
-- ARGV[1] count; then a turn: queue  key  nonce  verdict ("ok" | "retry" | "gone")  delay ms ("" or a look again after it)
--   what it did, in a line for people  n changes, then n triples:
--   "drop" field ""  |  "set" field value  |  "need" resource rv  |  "settled" "" "" (acted on a live list)
--   |  "again" "" ms: a look again after it whatever the verdict, unless the verdict's own comes first
-- Returns: {"OK", failures after it, or -1 where the nonce was not the current one, ...} | {"STALE"}
-- Invariant: a key leaves its lock only to idle, to its stream or to the delayed set; with a write open or a name reserved never to idle.
-- include: cache queue locks reads history
local at, now, reply, plans, queues, NONE = 2, now_ms(), {'OK'}, {}, {}, {}
local needed = {} -- resources that keys are to wait for
local VERDICTS, OPS = {ok = true, retry = true, gone = true}, {drop = true, set = true, need = true, settled = true, again = true}
for turn = 1, whole(ARGV[1]) do -- read and check every argument before the first write
  local queue, key, count = ARGV[at], ARGV[at + 1], ARGV[at + 6] ~= '0' and whole(ARGV[at + 6]) or 0
  local group = queues[queue] or {keys = {}, plans = {}, expects = {}, expected = base .. queue .. ':expect:'}
  local plan = { -- with all its fields: a table that grows is made anew each time it doubles
    queue = queue, key = key, nonce = ARGV[at + 2], verdict = ARGV[at + 3],
    delay = ARGV[at + 4] ~= '' and whole(ARGV[at + 4]), did = ARGV[at + 5], changes = count == 0 and NONE or {},
    expected = group.expected .. key, holder = false, lock = false, state = false, dirty = false,
    failed = false, crashed = false, turns = '', expects = false,
  }
  if string.find(plan.did, '\n', 1, true) then error('finish: more than a line from ' .. key) end
  if not VERDICTS[plan.verdict] then error('finish: bad verdict of ' .. key) end
  for c = 1, count do
    local from = at + 7 + (c - 1) * 3
    plan.changes[c] = {ARGV[from], ARGV[from + 1], ARGV[from + 2]}
    local counts = ARGV[from] == 'need' or ARGV[from] == 'again'
    local bad = not OPS[ARGV[from]] or not ARGV[from + 2] or (counts and not string.match(ARGV[from + 2], '^%d+$'))
    if bad then error('finish: bad change of ' .. plan.key) end
    if ARGV[from] == 'need' then needed[ARGV[from + 1]] = true end
  end
  at = at + 7 + 3 * #plan.changes
  local last = #group.keys + 1
  group.keys[last], group.plans[last], group.expects[last] = key, plan, plan.expected
  queues[queue], plans[turn] = group, plan
end

-- The holder of a lock, if its nonce is this. The locks of a batch begin alike, and to compare is faster than to match.
local head, head_nonce, head_holder
local function holder_if(lock, nonce)
  if nonce == head_nonce and string.find(lock, head, 1, true) == 1 then return head_holder end
  local holder, found = string.match(lock, '^holder=(%S+) nonce=(%S+)')
  if found ~= nonce then return nil end
  head, head_nonce, head_holder = 'holder=' .. holder .. ' nonce=' .. nonce .. ' ', nonce, holder
  return holder
end

-- Read once for all turns of a queue. Most turns have nothing but a lock to give back.
for queue, group in pairs(queues) do
  local own, seen = base .. queue, {}
  local locks = redis.call('HMGET', own .. ':locks', unpack(group.keys))
  local states = redis.call('HMGET', own .. ':state', unpack(group.keys))
  local failures = values_of(own .. ':failures', group.keys)
  local crashes = values_of(own .. ':crashes', group.keys)
  local any_expected = redis.call('EXISTS', unpack(group.expects)) > 0
  redis.call('ZCARD', base .. 'leases')
  local turns = read_turns(queue, group.keys)
  group.ended = {}
  for i, plan in ipairs(group.plans) do
    local holder = holder_if(locks[i] or '', plan.nonce)
    if holder and not seen[plan.key] then
      seen[plan.key], plan.holder, plan.lock, plan.state = true, holder, locks[i], states[i]
      plan.dirty = states[i] and states[i] ~= 'running' and string.sub(states[i], 1, 8) == 'running+'
      plan.failed, plan.crashed, plan.turns = failures[i], crashes[i], turns[i] or ''
      plan.expects = any_expected and redis.call('HLEN', plan.expected) > 0
      local ended = group.ended[plan.holder] or {}
      group.ended[plan.holder] = ended
      ended[#ended + 1] = plan.key
      if plan.dirty or plan.delay or plan.expects or plan.verdict ~= 'ok' or #plan.changes > 0 then check(queue) end
    end
  end
  for holder in pairs(group.ended) do redis.call('SCARD', base .. 'holder:' .. holder) end
end
-- These are written or read below. One of a wrong type must fail here.
if next(needed) then redis.call('HLEN', base .. 'watermark') end
for resource in pairs(needed) do redis.call('ZCARD', unread_key(resource)) end

local function settle(plan)
  local expected, min_rvs, unsettled = plan.expected, base .. plan.queue .. ':needs', base .. plan.queue .. ':unsettled'
  if plan.verdict == 'gone' then
    redis.call('DEL', expected)
    redis.call('HDEL', min_rvs, plan.key)
    redis.call('HDEL', unsettled, plan.key)
    return false
  end
  local min_rv, changed, settled = {}, false, plan.expects and redis.call('HEXISTS', expected, 'owner') == 1
  for _, change in ipairs(plan.changes) do
    if change[1] == 'drop' then redis.call('HDEL', expected, change[2])
    elseif change[1] == 'set' then redis.call('HSET', expected, change[2], change[3])
    elseif change[1] == 'settled' then settled = true
    elseif change[1] == 'again' then plan.again = whole(change[3])
    else
      local known = min_rv[change[2]]
      if not known or newer(change[3], known) then min_rv[change[2]] = change[3] end
      changed = true
    end
  end
  if changed then
    local words = {}
    for resource, rv in each_min_rv(redis.call('HGET', min_rvs, plan.key) or '') do
      if not min_rv[resource] or newer(rv, min_rv[resource]) then min_rv[resource] = rv end
    end
    for resource, rv in pairs(min_rv) do
      words[#words + 1] = resource .. '=' .. rv
      local mark = redis.call('HGET', base .. 'watermark', resource)
      if not mark or newer(rv, mark) then
        redis.call('ZADD', unread_key(resource), 0, place(rv) .. ' ' .. plan.queue .. ':' .. plan.key)
      end
    end
    table.sort(words)
    redis.call('HSET', min_rvs, plan.key, table.concat(words, ' '))
  end
  return settled -- the mark of a key whose expectations were lost stays until a turn has acted on a live list
end

-- The time in which a write may land begins with the next claim. So that claim does not wait for the back-off of many failures.
local OPEN_AGAIN_MS = 10000
-- The next claim brings down a time that was given before the clock went back. So that claim has to come soon.
local WAIT_MAX_MS = 60000

-- Of a key's expectations: whether a write is open whose time has not begun or is over; ms until the first time ends; whether any is open.
local function open_writes(expected)
  local expect = redis.call('HGETALL', expected)
  local only_owner, at_once, first = true, false, nil
  for f = 1, #expect, 2 do
    local field, value = expect[f], expect[f + 1]
    if string.sub(field, 1, 9) == 'reserved ' or (string.sub(value, 1, 8) == 'pending ' and not note(field)) then
      local until_ms = tonumber(string.match(value, 'until_ms=(%d+)$') or '')
      if until_ms then first = math.min(first or until_ms, until_ms) else at_once = true end
    end
    if field ~= 'owner' then only_owner = false end
  end
  if #expect > 0 and only_owner then redis.call('DEL', expected) end
  -- A time that is past and has not ended waits for a steady time of Redis: look again when a jump may be over.
  local wait_ms = first and (first > now and math.min(first - now, WAIT_MAX_MS) or CLOCK_JUMP_MS)
  return at_once, wait_ms, at_once or first ~= nil
end

for queue, group in pairs(queues) do
  for holder, ended in pairs(group.ended) do
    unlock(queue, ended, holder)
    redis.call('HDEL', base .. queue .. ':state', unpack(ended))
  end
end
for turn, plan in ipairs(plans) do
  local queue, key, own = plan.queue, plan.key, base .. plan.queue
  if not plan.holder then
    reply[turn + 1] = -1
  else
    if plan.crashed then redis.call('HDEL', own .. ':crashes', key) end
    local touched, at_once, again, open = plan.expects or plan.verdict == 'gone' or #plan.changes > 0, false, nil, false
    if touched then
      local settled = settle(plan)
      at_once, again, open = open_writes(plan.expected)
      if settled and not open then redis.call('HDEL', own .. ':unsettled', key) end
    end
    if plan.dirty then append(queue, key, string.sub(plan.state, 10)) end
    local delay, failures = plan.delay, 0
    if plan.verdict == 'retry' or at_once then
      delay, failures = back_off_ms(queue, key, now)
      if at_once then delay = math.min(delay, OPEN_AGAIN_MS) end
      delay = math.max(delay, plan.delay or 0)
    elseif plan.failed then
      redis.call('HDEL', own .. ':failures', key)
    end
    if delay then add_after(queue, key, delay, now) end
    if plan.again then add_after(queue, key, plan.again, now) end
    if again then add_after(queue, key, again, now) end
    if touched then keep_expectations(queue, key, delay or 0) end
    end_turn(queue, key, plan.turns, plan.holder, plan.lock, plan.verdict, plan.did, now)
    reply[turn + 1] = failures
  end
end
keep_turns()
wake(now)
return reply
