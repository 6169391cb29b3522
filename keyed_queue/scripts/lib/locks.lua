-- The lock of a key: "token=.. holder=.. since_ms=.. lease_ms=..".

local function token_of(lock) return lock and string.match(lock, '^token=(%d+)') end
local function holder_of(lock) return string.match(lock, ' holder=(%S+)') end
local function lease_of(lock) return tonumber(string.match(lock, ' lease_ms=(%d+)$')) end

local function unlock(key)
  redis.call('HDEL', base .. 'locks', key) -- first: a removal may run when memory is full
  redis.call('ZREM', base .. 'leases', key)
  redis.call('HDEL', base .. 'state', key)
end

-- Consumers call at least once a second. If Redis's clock has moved otherwise since the last call, then it jumped, or Redis or
-- all consumers were away. Nobody could renew: so each lease begins anew, and no holder that lives loses its key.
local CLOCK_JUMP_MS = 5000
local function steady(now)
  local last = tonumber(redis.call('GET', base .. 'tick') or now)
  redis.call('SET', base .. 'tick', number(now))
  if now >= last and now - last <= CLOCK_JUMP_MS then return end
  for _, key in ipairs(redis.call('ZRANGE', base .. 'leases', 0, -1)) do
    local lock = redis.call('HGET', base .. 'locks', key)
    redis.call('ZADD', base .. 'leases', number(now + (lock and lease_of(lock) or 0)), key)
  end
end

-- A consumer has called. One that is silent for a minute is no longer listed.
local function seen(holder, now)
  local consumers = base .. 'consumers'
  redis.call('ZREMRANGEBYSCORE', consumers, '-inf', number(now - 60000)) -- first: a removal may run when memory is full
  redis.call('ZADD', consumers, number(now), holder)
end
