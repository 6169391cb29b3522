-- include: queue
-- The only way out of a lock. A task is "queue:key", as in the lease table.

-- Redis's clock has jumped, or nobody renewed, if since the last renewal it went back or moved on by more than this.
local CLOCK_JUMP_MS = 3000

local function split(task) return string.match(task, '^([^:]+):(.*)$') end

local function unlock(queue, keys, holder)
  local tasks = {}
  for i, key in ipairs(keys) do tasks[i] = queue .. ':' .. key end
  redis.call('HDEL', base .. queue .. ':locks', unpack(keys))
  redis.call('ZREM', base .. 'leases', unpack(tasks))
  redis.call('SREM', base .. 'holder:' .. holder, unpack(tasks))
end

local function holder_of(lock) return string.match(lock, 'holder=(%S+)') end
local function nonce_of(lock) return string.match(lock, 'nonce=(%S+)') end

-- A holder is gone for good: it may claim no more, and nothing is kept of it. The caller gives back the keys it held.
local function strike_off(holder)
  local queues, seen = redis.call('SMEMBERS', base .. 'queues'), base .. 'seen'
  redis.call('ZCARD', seen)
  redis.call('HDEL', base .. 'holders', holder)
  redis.call('ZREM', base .. 'waiters', holder)
  redis.call('ZREM', seen, holder)
  for _, queue in ipairs(queues) do
    redis.pcall('XGROUP', 'DELCONSUMER', base .. queue .. ':stream', 'workers', holder) -- claim acknowledges at once: nothing is pending
  end
end

local function outlives_answer(field) return string.sub(field, 1, 7) == 'delete ' or string.sub(field, 1, 6) == 'scale ' end

local function back_off(field) return string.sub(field, 1, 8) == 'backoff ' end

-- Whether a field is stored as given and stands for no write.
local function note(field) return back_off(field) or string.sub(field, 1, 5) == 'rest ' end

-- Expectations outlive the pause of their key by five minutes. With a back-off they live for twice the longest one, as upstream's do.
local function keep_expectations(queue, key, delay_ms)
  -- A jump of the clock by hours takes nothing along that the cache has yet to show: open writes, and deletes and scales with an answer.
  local EXPECTATIONS_TTL_MS, BACK_OFF_TTL_MS, OPEN_TTL_MS = 300000, 1800000, 691200000
  local expected, least = base .. queue .. ':expect:' .. key, 0
  if redis.call('HEXISTS', base .. queue .. ':unsettled', key) == 1 then least = OPEN_TTL_MS
  else
    for _, field in ipairs(redis.call('HKEYS', expected)) do
      if outlives_answer(field) then least = OPEN_TTL_MS break end
      if back_off(field) then least = BACK_OFF_TTL_MS end
    end
  end
  redis.call('PEXPIRE', expected, number(math.max(EXPECTATIONS_TTL_MS + delay_ms, least)))
end

local PARKED_MAX_MS = 300000

-- A key counts how often in a row its worker died (0: it is only suspect, see reclaim). After the first time it is tried at once,
-- after the second in 1 s, and then in 2 s, doubled each time up to 300 s.
local function requeue_crashed(queue, key, why, now)
  local crashes = redis.call('HINCRBY', base .. queue .. ':crashes', key, 1)
  if crashes == 1 then return append(queue, key, why) end
  local pause = math.min(1000 * 2 ^ math.min(crashes - 2, 20), PARKED_MAX_MS)
  redis.call('HSET', base .. queue .. ':state', key, 'parked ' .. why)
  redis.call('ZADD', base .. queue .. ':parked', number(now + pause), key)
  hurry()
  keep_expectations(queue, key, pause)
end
