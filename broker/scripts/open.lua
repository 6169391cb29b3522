-- open: turns may begin, now that every resource was listed after the drain. While the fleet is paused, they begin once the pause ends.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED phase hold watermark waiters holders queue:wake
-- ARGV[1..] resources that must have a watermark
-- Returns: {"OK"} | {"NEEDLIST", resource} | {"STALE"}
-- Invariant: no key is claimed in an epoch before its cache is complete.
-- include: queue waiters
for i = 1, #ARGV do
  if redis.call('HEXISTS', base .. 'watermark', ARGV[i]) == 0 then return {'NEEDLIST', ARGV[i]} end
end
wake_all(now_ms())
redis.call('SET', base .. 'phase', redis.call('EXISTS', base .. 'hold') == 1 and 'HELD' or 'OPEN')
return {'OK'}
