-- The lock of a key: "token=.. holder=.. since_ms=.. lease_ms=..". " anew=1" stands before lease_ms once the lease was begun anew.

local ANEW = ' anew=1'

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
-- A lease does so once until its holder renews it. Consumers that come once a minute see a jump each time: the lease of a dead one
-- has to end nevertheless. From then on a jump only shortens it, to a whole lease from now.
local CLOCK_JUMP_MS = 5000
local function steady(now)
  local last = tonumber(redis.call('GET', base .. 'tick') or now)
  redis.call('SET', base .. 'tick', number(now))
  if now >= last and now - last <= CLOCK_JUMP_MS then return end
  for _, key in ipairs(redis.call('ZRANGE', base .. 'leases', 0, -1)) do
    local lock = redis.call('HGET', base .. 'locks', key)
    local anew_at = number(now + (lock and lease_of(lock) or 0))
    if lock and not string.find(lock, ANEW, 1, true) then
      redis.call('HSET', base .. 'locks', key, (string.gsub(lock, ' lease_ms=%d+$', ANEW .. '%0')))
      redis.call('ZADD', base .. 'leases', anew_at, key)
    else
      redis.call('ZADD', base .. 'leases', 'LT', anew_at, key)
    end
  end
end

-- The holder has renewed, so it lives: at the next jump its lease may begin anew again.
local function lives(key, lock)
  if string.find(lock, ANEW, 1, true) then redis.call('HSET', base .. 'locks', key, (string.gsub(lock, ANEW, '', 1))) end
end

-- A consumer has called. One that is silent for a minute is no longer listed.
local function seen(holder, now)
  local consumers = base .. 'consumers'
  redis.call('ZREMRANGEBYSCORE', consumers, '-inf', number(now - 60000)) -- first: a removal may run when memory is full
  redis.call('ZADD', consumers, number(now), holder)
end
