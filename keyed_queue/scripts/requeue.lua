-- requeue: parked keys run again, with a clean record. Any other key is added.
-- KEYS[1] base
-- DERIVED state groups parked failures errors stream:group ring waiters wake
-- ARGV[1..] keys
-- Returns: {"OK", keys that were parked, entries added to the streams}
-- Invariant: a key leaves the parked set only to its stream.
-- include: queue
local now, parked, added = now_ms(), 0, 0
check()
for i = 1, #ARGV do
  if redis.call('ZREM', base .. 'parked', ARGV[i]) == 1 then
    redis.call('HDEL', base .. 'state', ARGV[i])
    redis.call('HDEL', base .. 'failures', ARGV[i])
    redis.call('HDEL', base .. 'errors', ARGV[i])
    parked = parked + 1
  end
  added = added + add(ARGV[i])
end
wake(added, now)
return {'OK', parked, added}
