-- reclaim: leases past their end give their keys back; nobody renewed them.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED leases tick no_reclaim_until waiters wake holder:name queue:locks queue:state queue:stream
-- ARGV[1] at most so many
-- Returns: {"OK", task, ...} | {"STALE"}
-- Invariant: a lease ends by finish, release or here, and here its key is queued in the same step.
-- needs: queue locks
local limit, now, added, reply = whole(ARGV[1]), now_ms(), 0, {'OK'}
local tick = tonumber(redis.call('GET', base .. 'tick') or now)
if now < tick or now - tick > CLOCK_JUMP_MS then return reply end -- the next renewal sees to it first
if now < tonumber(redis.call('GET', base .. 'no_reclaim_until') or 0) then return reply end
local tasks = redis.call('ZRANGEBYSCORE', base .. 'leases', '-inf', number(now), 'LIMIT', 0, limit)
for _, task in ipairs(tasks) do check((split(task))) end
for _, task in ipairs(tasks) do
  local queue, key = split(task)
  local lock = redis.call('HGET', base .. queue .. ':locks', key)
  redis.call('ZREM', base .. 'leases', task)
  if lock then
    unlock(queue, {key}, holder_of(lock))
    append(queue, key)
    added = added + 1
  end
  reply[#reply + 1] = task
end
if added > 0 then wake(added, now) end
return reply
