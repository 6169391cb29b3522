-- renew: a supervisor renews all leases of all its workers, once a second. The call also watches for jumps of Redis's clock.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED waiters queue:wake holders seen holder:name leases tick no_reclaim_until capping queues queue:stream queue:backlog queue:delayed queue:parked timer
-- DERIVED queue:turns queue:history histories history_bytes
-- ARGV[1] lease ms  ARGV[2..] holders
-- Returns: {"OK", holder, ...} the holders that are no longer registered | {"STALE"}
-- Invariant: a lease is only ever renewed for a registered holder that still has the lock.
-- include: queue locks history waiters
local lease_ms, now, reply = whole(ARGV[1]), now_ms(), {'OK'}
local holders, seen, leases = base .. 'holders', base .. 'seen', base .. 'leases'
local capping, tick = base .. 'capping', base .. 'tick'
redis.call('ZREMRANGEBYSCORE', base .. 'waiters', '-inf', number(now - 1)) -- first: a removal may run when memory is full
local queues = redis.call('SMEMBERS', base .. 'queues')
for _, queue in ipairs(queues) do check(queue) end -- once a second, so that damage shows though no key moves
redis.call('HLEN', holders)
redis.call('HLEN', capping)
redis.call('ZCARD', seen)
redis.call('ZCARD', base .. 'histories')

-- After a jump no lease may end early, and nothing may wait an hour longer: no lease, no delayed key, no parked key.
-- Each set is walked once, from its latest time down. What enters meanwhile is timed by the right clock.
local PAGE, WAIT_MAX_MS = 2000, 1500
local at_most = {leases = now + lease_ms, seen = now, waiters = now + WAIT_MAX_MS}
for _, queue in ipairs(queues) do
  at_most[queue .. ':delayed'], at_most[queue .. ':parked'] = now, now + PARKED_MAX_MS
end
local last = tonumber(redis.call('GET', tick) or now)
if now < last or now - last > CLOCK_JUMP_MS then
  redis.call('SET', base .. 'no_reclaim_until', number(now + lease_ms))
  for zset in pairs(at_most) do redis.call('HSET', capping, zset, '+inf') end
  hurry()
end
for zset, at in pairs(redis.call('EXISTS', capping) == 1 and at_most or {}) do
  local from = redis.call('HGET', capping, zset)
  local page = from and redis.call('ZREVRANGEBYSCORE', base .. zset, from, number(at + 1), 'WITHSCORES', 'LIMIT', 0, PAGE) or {}
  for i = 1, #page, 2 do redis.call('ZADD', base .. zset, number(at), page[i]) end
  if #page > 0 then hurry() end
  if #page < 2 * PAGE then redis.call('HDEL', capping, zset)
  else redis.call('HSET', capping, zset, page[#page]) end
end
redis.call('SET', tick, number(now))
for i = 2, #ARGV do
  local holder = ARGV[i]
  if redis.call('HEXISTS', holders, holder) == 0 then
    reply[#reply + 1] = holder
  else
    redis.call('ZADD', seen, number(now), holder)
    for _, task in ipairs(redis.call('SMEMBERS', base .. 'holder:' .. holder)) do
      redis.call('ZADD', leases, 'XX', number(now + lease_ms), task)
    end
  end
end
trim_histories(queues, now)
wake_for_queued(queues) -- a stopped waiter can have taken a token
wake(now)
return reply
