-- finish: end turns, each with its answers and its verdict.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED queue:locks leases holder:name queue:state queue:stream queue:expect:key queue:needs queue:unsettled
-- DERIVED queue:failures queue:crashes queue:bucket queue:delayed waiters wake timer watermark unread:resource
-- ARGV[1] count; then a turn: queue  key  nonce  verdict ("ok" | "retry" | "gone")  delay ms ("" or a look again after it)
--   n changes, then n triples: "drop" field ""  |  "set" field value  |  "need" resource rv  |  "settled" "" "" (acted on a live list)
-- Returns: {"OK", failures after it, or -1 where the nonce was not the current one, ...} | {"STALE"}
-- Invariant: a key leaves its lock only to idle, to its stream or to the delayed set; with a write still unanswered never to idle.
-- needs: cache queue locks reads
local at, now, reply, added, plans, seen = 2, now_ms(), {'OK'}, 0, {}, {}
local VERDICTS, OPS = {ok = true, retry = true, gone = true}, {drop = true, set = true, need = true, settled = true}
for turn = 1, whole(ARGV[1]) do -- read and check every argument before the first write
  local plan = {queue = ARGV[at], key = ARGV[at + 1], nonce = ARGV[at + 2], verdict = ARGV[at + 3], changes = {}}
  plan.delay = ARGV[at + 4] ~= '' and whole(ARGV[at + 4]) or nil
  if not VERDICTS[plan.verdict] then error('finish: bad verdict of ' .. plan.key) end
  for c = 1, whole(ARGV[at + 5]) do
    local from = at + 6 + (c - 1) * 3
    plan.changes[c] = {ARGV[from], ARGV[from + 1], ARGV[from + 2]}
    local bad = not OPS[ARGV[from]] or not ARGV[from + 2] or (ARGV[from] == 'need' and not string.match(ARGV[from + 2], '^%d+$'))
    if bad then error('finish: bad change of ' .. plan.key) end
  end
  at = at + 6 + 3 * #plan.changes
  local lock = redis.call('HGET', base .. plan.queue .. ':locks', plan.key)
  check(plan.queue)
  redis.call('HLEN', base .. plan.queue .. ':expect:' .. plan.key)
  local task = plan.queue .. ':' .. plan.key
  if lock and nonce_of(lock) == plan.nonce and not seen[task] then plan.holder, seen[task] = holder_of(lock), true end
  plans[turn] = plan
end

local function settle(plan)
  local record, needs = base .. plan.queue .. ':expect:' .. plan.key, base .. plan.queue .. ':needs'
  if plan.verdict == 'gone' then
    redis.call('DEL', record)
    redis.call('HDEL', needs, plan.key)
    redis.call('HDEL', base .. plan.queue .. ':unsettled', plan.key)
    return false
  end
  local need, changed, settled = {}, false, redis.call('EXISTS', record) == 1
  for _, change in ipairs(plan.changes) do
    if change[1] == 'drop' then redis.call('HDEL', record, change[2])
    elseif change[1] == 'set' then redis.call('HSET', record, change[2], change[3])
    elseif change[1] == 'settled' then settled = true
    else
      local known = need[change[2]]
      if not known or newer(change[3], known) then need[change[2]] = change[3] end
      changed = true
    end
  end
  if changed then
    local words = {}
    for resource, rv in string.gmatch(redis.call('HGET', needs, plan.key) or '', '(%S+)=(%S+)') do
      if not need[resource] or newer(rv, need[resource]) then need[resource] = rv end
    end
    for resource, rv in pairs(need) do
      words[#words + 1] = resource .. '=' .. rv
      local mark = redis.call('HGET', base .. 'watermark', resource)
      if not mark or newer(rv, mark) then redis.call('ZADD', unread_key(resource), 0, place(rv) .. ' ' .. plan.queue .. ':' .. plan.key) end
    end
    table.sort(words)
    redis.call('HSET', needs, plan.key, table.concat(words, ' '))
  end
  return settled -- a mark whose record is lost stays until somebody acted on a live list
end

local function pending(queue, key)
  local expect = redis.call('HGETALL', base .. queue .. ':expect:' .. key)
  local only_owner = true
  for f = 1, #expect, 2 do
    if string.sub(expect[f + 1], 1, 8) == 'pending ' then return true end
    if expect[f] ~= 'owner' then only_owner = false end
  end
  if #expect > 0 and only_owner then redis.call('DEL', base .. queue .. ':expect:' .. key) end
  return false
end

for turn, plan in ipairs(plans) do
  local queue, key = plan.queue, plan.key
  if not plan.holder then
    reply[turn + 1] = -1
  else
    unlock(queue, key, plan.holder)
    local dirty = redis.call('HGET', base .. queue .. ':state', key) == 'running+'
    redis.call('HDEL', base .. queue .. ':state', key)
    redis.call('HDEL', base .. queue .. ':crashes', key)
    local settled = settle(plan)
    local unanswered = pending(queue, key)
    if settled and not unanswered then redis.call('HDEL', base .. queue .. ':unsettled', key) end
    if dirty then append(queue, key) added = added + 1 end
    local delay
    if plan.verdict == 'retry' or unanswered then
      delay = math.max(back_off_ms(queue, key, now), plan.delay or 0)
    else
      redis.call('HDEL', base .. queue .. ':failures', key)
      delay = plan.delay
    end
    if delay then added = added + add_after(queue, key, delay, now) end
    keep_record(queue, key, delay or 0)
    reply[turn + 1] = tonumber(redis.call('HGET', base .. queue .. ':failures', key) or 0)
  end
end
wake(added, now)
return reply
