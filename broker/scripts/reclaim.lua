-- reclaim: give back the keys of leases that ended because nobody renewed them. Strike off holders that are not renewed for long.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED leases tick no_reclaim_until waiters queue:wake timer holders seen queues holder:name
-- DERIVED queue:locks queue:state queue:stream queue:backlog queue:rounds queue:crashes queue:parked queue:expect:key queue:unsettled
-- DERIVED queue:turns queue:history histories history_bytes pauses
-- ARGV[1] at most so many
-- Returns: {"OK", task, ...} | {"STALE"}
-- Invariant: a lease ends by finish, by release or here. Here its key is queued or parked in the same step.
-- include: queue locks history
local SILENT_MS = 60000 -- a supervisor renews its holders once a second, and has ended them long before this
local leases, limit, now, reply = base .. 'leases', whole(ARGV[1]), now_ms(), {'OK'}
local tick = tonumber(redis.call('GET', base .. 'tick') or now)
if now < tick or now - tick > CLOCK_JUMP_MS then return reply end -- the next renewal deals with the jump first
if now < tonumber(redis.call('GET', base .. 'no_reclaim_until') or 0) then return reply end
local tasks = redis.call('ZRANGEBYSCORE', leases, '-inf', number(now), 'LIMIT', 0, limit)
local silent = redis.call('ZRANGEBYSCORE', base .. 'seen', '-inf', number(now - SILENT_MS), 'LIMIT', 0, limit)
local turns = {}
for _, task in ipairs(tasks) do
  local queue, key = split(task)
  check(queue)
  turns[task] = read_turns(queue, {key})[1] or ''
end
for _, task in ipairs(tasks) do
  local queue, key = split(task)
  local lock = redis.call('HGET', base .. queue .. ':locks', key)
  redis.call('ZREM', leases, task)
  if lock then
    unlock(queue, {key}, holder_of(lock))
    local why = lose_turn(queue, key, turns[task], holder_of(lock), lock, '', now)
    -- The supervisor, which could say on which key the worker was working, has died too or was cut off. So at first no key is blamed:
    -- all become suspect. A key whose lease ends again before a turn of it has ended is claimed alone from then on.
    if redis.call('HSETNX', base .. queue .. ':crashes', key, 0) == 1 then
      append(queue, key, why)
    else
      requeue_crashed(queue, key, why, now)
    end
  end
  reply[#reply + 1] = task
end
for _, holder in ipairs(silent) do
  if redis.call('EXISTS', base .. 'holder:' .. holder) == 0 then strike_off(holder) end
end
keep_turns()
wake(now)
return reply
