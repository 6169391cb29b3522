-- The states of a key and the moves between them. A key without a state is idle.

-- Each token on the wake list lets one waiting worker go. There are never more tokens than waiters, so an idle fleet stays idle.
local function wake(count, now)
  if count == 0 then return end
  local tokens = base .. 'wake'
  local waiting = redis.call('ZCOUNT', base .. 'waiters', now, '+inf')
  local there = redis.call('LLEN', tokens)
  for _ = 1, math.min(count, waiting - there) do redis.call('LPUSH', tokens, 'key') end
end

-- Redis does not roll back. A key of a wrong type must end a script before its first write: later, the script could lose a key it moves.
local checked = {}
local function check(queue)
  if checked[queue] then return end
  local own = base .. queue
  redis.call('XLEN', own .. ':stream')
  for _, hash in ipairs({':state', ':locks', ':failures', ':crashes', ':bucket', ':needs', ':unsettled', ':why', ':history'}) do
    redis.call('HLEN', own .. hash)
  end
  for _, zset in ipairs({own .. ':delayed', own .. ':parked', base .. 'leases', base .. 'waiters'}) do
    redis.call('ZCARD', zset)
  end
  redis.call('LLEN', base .. 'wake')
  redis.call('LLEN', base .. 'timer')
  checked[queue] = true
end

-- The only place where a key enters a stream. The caller knows that no other entry for the key exists.
local function append(queue, key)
  redis.call('XADD', base .. queue .. ':stream', '*', 'key', key)
  redis.call('HSET', base .. queue .. ':state', key, 'queued')
end

-- Why a key is queued, for people: "since_ms count first[, last]", of the triggers since its last claim. It decides nothing.
local TRIGGER_BYTES_MAX = 160
local triggers = {}
local function because(queue, key, trigger)
  local of = triggers[queue] or {}
  triggers[queue] = of
  local known = of[key]
  if known then known.count, known.last = known.count + 1, trigger else of[key] = {count = 1, first = trigger, last = trigger} end
end

-- Write down what queued the keys of this call: once for all of them, and after the moves, which it must not keep from being made.
local function keep_triggers(now)
  for queue, of in pairs(triggers) do
    local names, values = {}, {}
    for key in pairs(of) do names[#names + 1] = key end
    for at = 1, #names, 3000 do
      local last = math.min(at + 2999, #names)
      for i, why in ipairs(redis.call('HMGET', base .. queue .. ':why', unpack(names, at, last))) do
        local key = names[at + i - 1]
        local since, count, first = string.match(why or '', '^(%d+) (%d+) ([^,]+)')
        local text = (since or number(now)) .. ' ' .. number((tonumber(count) or 0) + of[key].count) .. ' '
        text = text .. (first or string.sub(of[key].first, 1, TRIGGER_BYTES_MAX))
        if first or of[key].count > 1 then text = text .. ', ' .. string.sub(of[key].last, 1, TRIGGER_BYTES_MAX) end
        values[2 * i - 1], values[2 * i] = key, text
      end
      redis.call('HSET', base .. queue .. ':why', unpack(values, 1, 2 * (last - at + 1)))
    end
  end
  triggers = {}
end

-- A token for the supervisors: a key is due before the time until which they sleep.
local function hurry()
  local timer = base .. 'timer'
  if redis.call('LLEN', timer) == 0 then redis.call('LPUSH', timer, 'due') end
end

-- client-go's Add. An idle key is queued. A running one is marked, so that its finish queues it. All others are to be queued anyway.
local ARRANGED = {queued = true, ['running+'] = true, parked = true}
local function add(queue, key, trigger)
  local states = base .. queue .. ':state'
  local state = redis.call('HGET', states, key)
  because(queue, key, trigger)
  if not state then append(queue, key) return 1 end
  if state == 'running' then redis.call('HSET', states, key, 'running+')
  elseif not ARRANGED[state] then error('damaged: state of a key') end
  return 0
end

-- client-go's AddAfter: the earlier of two times wins. A supervisor that sleeps until a later time is woken.
local function add_after(queue, key, delay_ms, now)
  if delay_ms <= 0 then return add(queue, key, 'due') end
  local delayed, due = base .. queue .. ':delayed', now + delay_ms
  local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', delayed, 'LT', number(due), key)
  if not first or due < tonumber(first) then hurry() end
  return 0
end

-- client-go's default limiter: the later of 5 ms * 2^failures (at most 1000 s) and a bucket of 10/s, burst 100, which the queue shares.
local function back_off_ms(queue, key, now)
  local failures = redis.call('HINCRBY', base .. queue .. ':failures', key, 1)
  local own = failures > 18 and 1000000 or math.min(5 * 2 ^ (failures - 1), 1000000)
  local bucket = base .. queue .. ':bucket'
  local state = redis.call('HMGET', bucket, 'tokens', 'at_ms')
  local at = tonumber(state[2]) or now
  local tokens = math.min(100, (tonumber(state[1]) or 100) + math.max(0, now - at) / 100) - 1
  redis.call('HSET', bucket, 'tokens', string.format('%.2f', tokens), 'at_ms', number(now))
  return math.max(own, tokens < 0 and math.ceil(-tokens * 100 - 0.001) or 0), failures
end
