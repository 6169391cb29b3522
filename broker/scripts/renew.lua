-- renew: one call a supervisor a second: all leases of all its workers, and the watch over Redis's own clock.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED waiters wake holders holder:name leases tick no_reclaim_until queues queue:stream queue:delayed queue:parked timer
-- ARGV[1] lease ms  ARGV[2..] holders
-- Returns: {"OK", holder, ...} the holders that are no longer registered | {"STALE"}
-- Invariant: a lease is only ever renewed for a registered holder that still has the lock.
-- needs: queue locks
local lease_ms, now, reply = whole(ARGV[1]), now_ms(), {'OK'}
redis.call('ZREMRANGEBYSCORE', base .. 'waiters', '-inf', number(now - 1)) -- first: a removal may run when memory is full
local queues = redis.call('SMEMBERS', base .. 'queues')
for _, queue in ipairs(queues) do check(queue) end -- once a second: what is damaged shows though nothing happens
redis.call('HLEN', base .. 'holders')
local last = tonumber(redis.call('GET', base .. 'tick') or now)
if now < last or now - last > CLOCK_JUMP_MS then
  -- No lease may end early, and nothing may wait an hour longer: neither a lease, nor a delayed or a parked key.
  redis.call('SET', base .. 'no_reclaim_until', number(now + lease_ms))
  local function cap(zset, from, at)
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', zset, from, '+inf', 'LIMIT', 0, 10000)) do
      redis.call('ZADD', zset, number(at), member)
    end
  end
  cap(base .. 'leases', number(now + lease_ms + 1), now + lease_ms)
  for _, queue in ipairs(queues) do
    cap(base .. queue .. ':delayed', number(now + 1), now)
    cap(base .. queue .. ':parked', number(now + PARKED_MAX_MS + 1), now + PARKED_MAX_MS)
  end
  hurry()
end
redis.call('SET', base .. 'tick', number(now))
for i = 2, #ARGV do
  if redis.call('HEXISTS', base .. 'holders', ARGV[i]) == 0 then
    reply[#reply + 1] = ARGV[i]
  else
    for _, task in ipairs(redis.call('SMEMBERS', base .. 'holder:' .. ARGV[i])) do
      redis.call('ZADD', base .. 'leases', 'XX', number(now + lease_ms), task)
    end
  end
end
local listed = 0
for _, queue in ipairs(queues) do listed = listed + redis.call('XLEN', base .. queue .. ':stream') end
if listed > 0 then wake(1, now) end -- a stopped waiter can swallow a token
return reply
