-- add: keys need a look, now or after a delay.
-- KEYS[1] base
-- DERIVED state groups stream:group ring delayed waiters wake
-- ARGV[1] delay ms  ARGV[2..] pairs: key  group
-- Returns: {"OK", entries added to the streams}
-- Invariant: a key has at most one stream entry, and only while its state is queued; at most one delayed entry, which never moves later.
-- include: queue
local delay_ms, now, added, groups = whole(ARGV[1]), now_ms(), 0, base .. 'groups'
check()
for i = 2, #ARGV, 2 do
  local key, group = ARGV[i], ARGV[i + 1]
  -- Not a removal for nothing: once it has removed something, a script may grow a Redis that is full.
  if group ~= '' then redis.call('HSET', groups, key, group)
  elseif redis.call('HEXISTS', groups, key) == 1 then redis.call('HDEL', groups, key) end
  added = added + add_after(key, delay_ms, now)
end
wake(added, now)
return {'OK', added}
