-- pause: no turn begins from here on, and the reason is kept. With no reason, turns begin again.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED phase hold waiters holders queue:wake
-- ARGV[1] reason, empty to end the pause
-- Returns: {"OK", phase} | {"STALE"}
-- Invariant: while there is a reason, the phase is DRAIN or HELD (paused). It is HELD only while there is one.
-- include: queue waiters
local reason, phase_key, reason_key = ARGV[1], base .. 'phase', base .. 'hold'
local phase = redis.call('GET', phase_key) or 'DRAIN'
if reason ~= '' then
  redis.call('SET', reason_key, reason)
  if phase == 'OPEN' then phase = 'HELD' redis.call('SET', phase_key, phase) end
else
  redis.call('DEL', reason_key)
  if phase == 'HELD' then
    phase = 'OPEN'
    redis.call('SET', phase_key, phase)
    wake_all(now_ms())
  end
end
return {'OK', phase}
