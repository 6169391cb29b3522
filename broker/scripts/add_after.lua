-- add_after: a key needs a look after a while; the earlier of two times wins.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED queue:state queue:stream queue:backlog queue:rounds queue:delayed waiters holders queue:wake timer
-- DERIVED queue:failures queue:bucket pauses
-- ARGV[1] queue  ARGV[2] key  ARGV[3] delay ms, or "rate-limited"
-- Returns: {"OK", delay ms} | {"STALE"}
-- Invariant: a key has at most one delayed entry, and it never moves later.
-- include: queue
local queue, key, now = ARGV[1], ARGV[2], now_ms()
check(queue)
local delay = ARGV[3] == 'rate-limited' and (back_off_ms(queue, key, now)) or whole(ARGV[3])
add_after(queue, key, delay, now)
wake(now)
return {'OK', delay}
