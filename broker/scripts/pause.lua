-- pause: no turn begins from here on, and the reason is kept; or, with no reason, turns begin again.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED phase hold waiters wake
-- ARGV[1] reason, empty to end the hold
-- Returns: {"OK", phase} | {"STALE"}
-- Invariant: while there is a reason, the phase is DRAIN or HELD; it is HELD only while there is one.
-- include: queue
local reason = ARGV[1]
local phase = redis.call('GET', base .. 'phase') or 'DRAIN'
if reason ~= '' then
  redis.call('SET', base .. 'hold', reason)
  if phase == 'OPEN' then phase = 'HELD' redis.call('SET', base .. 'phase', phase) end
else
  redis.call('DEL', base .. 'hold')
  if phase == 'HELD' then
    phase = 'OPEN'
    redis.call('SET', base .. 'phase', phase)
    wake(64, now_ms())
  end
end
return {'OK', phase}
