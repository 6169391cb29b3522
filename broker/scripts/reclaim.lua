-- reclaim: leases past their end give their keys back; nobody renewed them. Holders that are not renewed for long are struck off.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED leases tick no_reclaim_until waiters wake timer holders seen queues holder:name
-- DERIVED queue:locks queue:state queue:stream queue:crashes queue:parked queue:expect:key
-- ARGV[1] at most so many
-- Returns: {"OK", task, ...} | {"STALE"}
-- Invariant: a lease ends by finish, release or here, and here its key is queued or parked in the same step.
-- include: queue locks
local SILENT_MS = 60000 -- a supervisor renews its holders once a second, and has ended them long before this
local limit, now, added, reply = whole(ARGV[1]), now_ms(), 0, {'OK'}
local tick = tonumber(redis.call('GET', base .. 'tick') or now)
if now < tick or now - tick > CLOCK_JUMP_MS then return reply end -- the next renewal sees to it first
if now < tonumber(redis.call('GET', base .. 'no_reclaim_until') or 0) then return reply end
local tasks = redis.call('ZRANGEBYSCORE', base .. 'leases', '-inf', number(now), 'LIMIT', 0, limit)
local silent = redis.call('ZRANGEBYSCORE', base .. 'seen', '-inf', number(now - SILENT_MS), 'LIMIT', 0, limit)
for _, task in ipairs(tasks) do check((split(task))) end
for _, task in ipairs(tasks) do
  local queue, key = split(task)
  local lock = redis.call('HGET', base .. queue .. ':locks', key)
  redis.call('ZREM', base .. 'leases', task)
  if lock then
    unlock(queue, {key}, holder_of(lock))
    -- Who could say which key was worked on has died too, or was cut off. So none is blamed at first: all become suspect, which
    -- lets a key be claimed alone only. If its lease ends once more it was the only key in the hands of the worker that died.
    if redis.call('HSETNX', base .. queue .. ':crashes', key, 0) == 1 then
      append(queue, key)
      added = added + 1
    else
      added = added + requeue_crashed(queue, key, now)
    end
  end
  reply[#reply + 1] = task
end
for _, holder in ipairs(silent) do
  if redis.call('EXISTS', base .. 'holder:' .. holder) == 0 then strike_off(holder) end
end
if added > 0 then wake(added, now) end
return reply
