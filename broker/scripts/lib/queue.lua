-- The states of a key and the moves between them. An absent state is idle.

-- Tokens on the wake list let waiting workers go; never more tokens than waiters, so an idle fleet stays idle.
local function wake(count, now)
  if count == 0 then return end
  local waiters = redis.call('ZCOUNT', base .. 'waiters', now, '+inf')
  local tokens = redis.call('LLEN', base .. 'wake')
  for _ = 1, math.min(count, waiters - tokens) do redis.call('LPUSH', base .. 'wake', 'key') end
end

-- Redis does not roll back: a key of a wrong type must end a script before its first write, or it could lose what it moves.
local checked = {}
local function check(queue)
  if checked[queue] then return end
  local own = base .. queue
  redis.call('XLEN', own .. ':stream')
  for _, hash in ipairs({':state', ':locks', ':failures', ':crashes', ':bucket', ':needs', ':unsettled'}) do
    redis.call('HLEN', own .. hash)
  end
  for _, zset in ipairs({own .. ':delayed', own .. ':parked', base .. 'leases', base .. 'waiters'}) do
    redis.call('ZCARD', zset)
  end
  redis.call('LLEN', base .. 'wake')
  redis.call('LLEN', base .. 'timer')
  checked[queue] = true
end

-- The one place where a key enters a stream: its state says that no other entry for it exists.
local function append(queue, key)
  redis.call('XADD', base .. queue .. ':stream', '*', 'key', key)
  redis.call('HSET', base .. queue .. ':state', key, 'queued')
end

-- A token for the supervisors: something is due before the time they sleep until.
local function hurry()
  if redis.call('LLEN', base .. 'timer') == 0 then redis.call('LPUSH', base .. 'timer', 'due') end
end

-- client-go's Add: idle is queued, running is remembered, all else is arranged already.
local ARRANGED = {queued = true, ['running+'] = true, parked = true}
local function add(queue, key)
  local state = redis.call('HGET', base .. queue .. ':state', key)
  if not state then append(queue, key) return 1 end
  if state == 'running' then redis.call('HSET', base .. queue .. ':state', key, 'running+')
  elseif not ARRANGED[state] then error('damaged: state of a key') end
  return 0
end

-- client-go's AddAfter: the earlier time wins; a supervisor asleep until a later time is woken.
local function add_after(queue, key, delay_ms, now)
  if delay_ms <= 0 then return add(queue, key) end
  local delayed, due = base .. queue .. ':delayed', now + delay_ms
  local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', delayed, 'LT', number(due), key)
  if not first or due < tonumber(first) then hurry() end
  return 0
end

-- client-go's default limiter: the later of 5 ms * 2^failures (at most 1000 s) and a bucket of 10/s, burst 100, shared by the queue.
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
