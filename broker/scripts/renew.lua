-- renew: one call a supervisor a second: all leases of all its workers, and the watch over Redis's own clock.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED waiters wake holders seen holder:name leases tick no_reclaim_until capping queues queue:stream queue:delayed queue:parked timer
-- ARGV[1] lease ms  ARGV[2..] holders
-- Returns: {"OK", holder, ...} the holders that are no longer registered | {"STALE"}
-- Invariant: a lease is only ever renewed for a registered holder that still has the lock.
-- include: queue locks
local lease_ms, now, reply = whole(ARGV[1]), now_ms(), {'OK'}
redis.call('ZREMRANGEBYSCORE', base .. 'waiters', '-inf', number(now - 1)) -- first: a removal may run when memory is full
local queues = redis.call('SMEMBERS', base .. 'queues')
for _, queue in ipairs(queues) do check(queue) end -- once a second: what is damaged shows though nothing happens
redis.call('HLEN', base .. 'holders')
redis.call('HLEN', base .. 'capping')
redis.call('ZCARD', base .. 'seen')

-- After a jump no lease may end early, and nothing may wait an hour longer: neither a lease, nor a delayed or a parked key.
-- Every set is walked once, from its farthest time down: what is entered meanwhile was entered by the right clock.
local PAGE, WAIT_MAX_MS = 2000, 1500
local at_most = {leases = now + lease_ms, seen = now, waiters = now + WAIT_MAX_MS}
for _, queue in ipairs(queues) do
  at_most[queue .. ':delayed'], at_most[queue .. ':parked'] = now, now + PARKED_MAX_MS
end
local last = tonumber(redis.call('GET', base .. 'tick') or now)
if now < last or now - last > CLOCK_JUMP_MS then
  redis.call('SET', base .. 'no_reclaim_until', number(now + lease_ms))
  for zset in pairs(at_most) do redis.call('HSET', base .. 'capping', zset, '+inf') end
  hurry()
end
for zset, at in pairs(redis.call('EXISTS', base .. 'capping') == 1 and at_most or {}) do
  local from = redis.call('HGET', base .. 'capping', zset)
  local page = from and redis.call('ZREVRANGEBYSCORE', base .. zset, from, number(at + 1), 'WITHSCORES', 'LIMIT', 0, PAGE) or {}
  for i = 1, #page, 2 do redis.call('ZADD', base .. zset, number(at), page[i]) end
  if #page > 0 then hurry() end
  if #page < 2 * PAGE then redis.call('HDEL', base .. 'capping', zset)
  else redis.call('HSET', base .. 'capping', zset, page[#page]) end
end
redis.call('SET', base .. 'tick', number(now))
for i = 2, #ARGV do
  if redis.call('HEXISTS', base .. 'holders', ARGV[i]) == 0 then
    reply[#reply + 1] = ARGV[i]
  else
    redis.call('ZADD', base .. 'seen', number(now), ARGV[i])
    for _, task in ipairs(redis.call('SMEMBERS', base .. 'holder:' .. ARGV[i])) do
      redis.call('ZADD', base .. 'leases', 'XX', number(now + lease_ms), task)
    end
  end
end
local listed = 0
for _, queue in ipairs(queues) do listed = listed + redis.call('XLEN', base .. queue .. ':stream') end
if listed > 0 then wake(1, now) end -- a stopped waiter can swallow a token
return reply
