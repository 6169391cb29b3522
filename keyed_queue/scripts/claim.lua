-- claim: take queued keys, of each group in turn, and lock them. First end the leases that nobody renewed, and queue what is due.
-- KEYS[1] base
-- DERIVED consumers waiters wake tick leases locks state groups failures errors parked delayed stream:group ring token
-- ARGV[1] holder  ARGV[2] lease ms  ARGV[3] keys at most
-- ARGV[4] retries  ARGV[5] back-off ms  ARGV[6] longest back-off ms: for the keys of consumers that died
-- Returns: {"OK", {key, token, failures in a row, ms it was queued}, ...} | {"EMPTY", ms until the next key may be due, or -1}
-- Invariant: a claimed key was queued, is running, has one lock, one lease and no stream entry. Its token is greater than any before.
-- include: queue failures locks
local holder, lease_ms, most, policy, now, moved = ARGV[1], whole(ARGV[2]), whole(ARGV[3]), policy_at(4), now_ms(), 0
local waiters, leases, delayed, ring = base .. 'waiters', base .. 'leases', base .. 'delayed', base .. 'ring'
local AT_ONCE, WAIT_MS = 200, 1500
check()
redis.call('ZREM', waiters, holder)
seen(holder, now)

steady(now)
for _, key in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', number(now), 'LIMIT', 0, AT_ONCE)) do
  local lock, dirty = redis.call('HGET', base .. 'locks', key), redis.call('HGET', base .. 'state', key) == 'running+'
  unlock(key)
  local told = 'the lease ended: ' .. (lock and holder_of(lock) or '?') .. ' died, or was cut off, while it had the key'
  if fail(key, told, dirty, true, now, policy) == 'queued' then moved = moved + 1 end
end
for _, key in ipairs(redis.call('ZRANGEBYSCORE', delayed, '-inf', number(now), 'LIMIT', 0, AT_ONCE)) do
  redis.call('ZREM', delayed, key)
  moved = moved + add(key)
end

local reply, last = {'OK'}, tonumber(redis.call('GET', base .. 'token') or 0)
while #reply <= most do
  local group = redis.call('LPOP', ring)
  if not group then break end
  local stream = base .. 'stream:' .. group
  local entry = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  local key, queued_ms = entry[2][2], tonumber(string.match(entry[1], '^%d+'))
  redis.call('XDEL', stream, entry[1])
  if redis.call('XLEN', stream) == 0 then redis.call('DEL', stream) else redis.call('RPUSH', ring, group) end
  -- Microseconds of the clock, where that is more: so tokens grow even if Redis has lost the last one.
  last = math.max(last + 1, now * 1000)
  local lock = 'token=' .. number(last) .. ' holder=' .. holder .. ' since_ms=' .. number(now) .. ' lease_ms=' .. number(lease_ms)
  redis.call('HSET', base .. 'locks', key, lock)
  redis.call('ZADD', leases, number(now + lease_ms), key)
  redis.call('HSET', base .. 'state', key, 'running')
  local failures = tonumber(redis.call('HGET', base .. 'failures', key) or 0)
  reply[#reply + 1] = {key, number(last), failures, math.max(0, now - queued_ms)}
end
if #reply > 1 then
  redis.call('SET', base .. 'token', number(last))
  if moved > #reply - 1 then wake(moved - #reply + 1, now) end
  return reply
end
redis.call('ZADD', waiters, number(now + WAIT_MS), holder)
local next_at
for _, times in ipairs({delayed, leases}) do
  local first = tonumber(redis.call('ZRANGE', times, 0, 0, 'WITHSCORES')[2])
  if first and (not next_at or first < next_at) then next_at = first end
end
return {'EMPTY', next_at and math.max(0, next_at - now) or -1}
