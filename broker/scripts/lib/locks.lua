-- include: queue
-- The one way out of a lock. A task is "queue:key", as in the lease table.

-- The clock jumped, or nobody renewed, if it moved by less than nothing or by more than this since the last renewal.
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

-- A holder is gone for good: it may claim no more, and nothing is kept of it. What it holds is the caller's to give back.
local function strike_off(holder)
  local queues = redis.call('SMEMBERS', base .. 'queues')
  redis.call('ZCARD', base .. 'seen')
  redis.call('HDEL', base .. 'holders', holder)
  redis.call('ZREM', base .. 'waiters', holder)
  redis.call('ZREM', base .. 'seen', holder)
  for _, queue in ipairs(queues) do
    redis.pcall('XGROUP', 'DELCONSUMER', base .. queue .. ':stream', 'workers', holder) -- claim acknowledges at once: nothing is pending
  end
end

local RECORD_TTL_MS = 300000

local BACK_OFF_TTL_MS = 1800000

local function back_off(field) return string.sub(field, 1, 8) == 'backoff ' end

-- Stored as given, and no write.
local function note(field) return back_off(field) or string.sub(field, 1, 5) == 'rest ' end

-- A record outlives the pause of its key by five minutes; one with a back-off is kept for twice the longest of those, as upstream's.
local function keep_record(queue, key, delay_ms)
  local record, ttl = base .. queue .. ':expect:' .. key, RECORD_TTL_MS + delay_ms
  if ttl < BACK_OFF_TTL_MS then
    for _, field in ipairs(redis.call('HKEYS', record)) do
      if back_off(field) then ttl = BACK_OFF_TTL_MS break end
    end
  end
  redis.call('PEXPIRE', record, number(ttl))
end

local PARKED_MAX_MS = 300000

-- Crashes of a key in a row (0: it is only suspect, see reclaim): the first retries at once, the second after 1 s, then 2 s doubling to 300 s.
local function requeue_crashed(queue, key, now)
  local crashes = redis.call('HINCRBY', base .. queue .. ':crashes', key, 1)
  if crashes == 1 then append(queue, key) return 1 end
  local pause = math.min(1000 * 2 ^ math.min(crashes - 2, 20), PARKED_MAX_MS)
  redis.call('HSET', base .. queue .. ':state', key, 'parked')
  redis.call('ZADD', base .. queue .. ':parked', number(now + pause), key)
  hurry()
  keep_record(queue, key, pause)
  return 0
end
