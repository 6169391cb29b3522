-- add: a key needs a look.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED queue:state queue:stream queue:backlog queue:rounds queue:parked waiters holders queue:wake queue:crashes pauses
-- ARGV[1] queue  ARGV[2] "" or "unpark"  ARGV[3] what asks for it, for people  ARGV[4..] keys
-- Returns: {"OK", entries added to the stream} | {"STALE"}
-- Invariant: a key has at most one place in its queue, and only while its state is queued.
-- include: queue
local queue, free, now, added = ARGV[1], ARGV[2] == 'unpark', now_ms(), 0
local parked, crashes = base .. queue .. ':parked', base .. queue .. ':crashes'
check(queue)
for i = 4, #ARGV do
  local key = ARGV[i]
  if free and redis.call('ZREM', parked, key) == 1 then
    redis.call('HDEL', crashes, key)
    added = added + unpark(queue, key, ARGV[3], now)
  else
    added = added + add(queue, key, ARGV[3], now)
  end
end
wake(now)
return {'OK', added}
