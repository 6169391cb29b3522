-- finish: end the run of a key, well or badly.
-- KEYS[1] base
-- DERIVED locks leases state groups failures errors parked delayed stream:group ring waiters wake
-- ARGV[1] key  ARGV[2] token  ARGV[3] "ok" | "failed"  ARGV[4] ms after which an "ok" key is to be looked at again, or ""
-- ARGV[5] retries  ARGV[6] back-off ms  ARGV[7] longest back-off ms  ARGV[8] text of the failure
-- Returns: {"OK", "idle" | "queued" | "delayed" | "parked", failures in a row} | {"LOST"} the lock is another's now: nothing was done
-- Invariant: a key leaves its lock to idle, to its stream, to the delayed or to the parked set. One that was added meanwhile is never idle.
-- include: queue failures locks
local key, token, verdict, delay = ARGV[1], ARGV[2], ARGV[3], ARGV[4] ~= '' and whole(ARGV[4]) or nil
local policy, now = policy_at(5), now_ms()
if verdict ~= 'ok' and verdict ~= 'failed' then error('finish: bad verdict') end
check()
if token_of(redis.call('HGET', base .. 'locks', key)) ~= token then return {'LOST'} end
local dirty = redis.call('HGET', base .. 'state', key) == 'running+'
unlock(key)
if verdict == 'failed' then
  local became, failures = fail(key, ARGV[8], dirty, false, now, policy)
  if became == 'queued' then wake(1, now) end
  return {'OK', became, failures}
end
redis.call('HDEL', base .. 'failures', key)
redis.call('HDEL', base .. 'errors', key)
local added = delay and add_after(key, delay, now) or 0
if dirty then added = added + add(key) end
if added > 0 then
  wake(added, now)
  return {'OK', 'queued', 0}
end
if delay then return {'OK', 'delayed', 0} end
forget_group(key)
return {'OK', 'idle', 0}
