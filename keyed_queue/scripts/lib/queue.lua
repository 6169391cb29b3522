-- The states of a key and the moves between them. A key without a state is idle.

-- Redis does not roll back. A key of a wrong type must end a script before its first write: later, the script could lose a key it moves.
local function check()
  for _, name in ipairs({base .. 'state', base .. 'groups', base .. 'locks', base .. 'failures', base .. 'errors'}) do
    redis.call('HLEN', name)
  end
  for _, name in ipairs({base .. 'delayed', base .. 'parked', base .. 'leases', base .. 'waiters', base .. 'consumers'}) do
    redis.call('ZCARD', name)
  end
  redis.call('LLEN', base .. 'wake')
  redis.call('LLEN', base .. 'ring')
end

-- Each token on the wake list lets one waiting consumer go. There are never more tokens than waiters, so an idle queue stays idle.
local function wake(count, now)
  if count == 0 then return end
  local tokens = base .. 'wake'
  local waiting = redis.call('ZCOUNT', base .. 'waiters', number(now), '+inf')
  local there = redis.call('LLEN', tokens)
  for _ = 1, math.min(count, waiting - there) do redis.call('LPUSH', tokens, 'key') end
end

-- The only place where a key enters a stream. The caller knows that no other entry for the key exists.
-- A group is in the ring exactly while its stream has entries.
local function append(key)
  local group = redis.call('HGET', base .. 'groups', key) or ''
  local stream = base .. 'stream:' .. group
  if redis.call('XLEN', stream) == 0 then redis.call('RPUSH', base .. 'ring', group) end
  redis.call('XADD', stream, '*', 'key', key)
  redis.call('HSET', base .. 'state', key, 'queued')
end

-- An idle key is queued. A running one is marked, so that its finish queues it. A parked one waits for requeue.
local function add(key)
  local state = redis.call('HGET', base .. 'state', key)
  if not state then append(key) return 1 end
  if state == 'running' then redis.call('HSET', base .. 'state', key, 'running+') end
  return 0
end

-- The earlier of two times wins. Consumers that wait for a later time are woken.
local function add_after(key, delay_ms, now)
  if delay_ms <= 0 then return add(key) end
  local delayed, due = base .. 'delayed', now + delay_ms
  local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', delayed, 'LT', number(due), key)
  if not first or due < tonumber(first) then wake(1, now) end
  return 0
end

-- Nothing is kept of a key that is idle and not delayed.
local function forget_group(key)
  if not redis.call('ZSCORE', base .. 'delayed', key) then redis.call('HDEL', base .. 'groups', key) end
end
