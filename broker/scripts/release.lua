-- release: a holder is dead or done. Every key it held goes back to its stream; the keys' expectations stay.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED holders seen holder:name waiters queue:wake leases queues queue:locks queue:state queue:stream queue:backlog queue:rounds
-- DERIVED queue:crashes queue:parked queue:expect:key queue:unsettled timer queue:turns queue:history histories history_bytes pauses
-- ARGV[1] holder  ARGV[2] "" or the task ("queue:key") that is to blame for the death  ARGV[3] how it ended, for people; or ""
-- Returns: {"OK", task, ...} the tasks given back | {"STALE"}
-- Invariant: every unlock without a finish queues or parks its key. Afterwards the holder can claim nothing.
-- include: queue locks history waiters
local holder, blamed, ended, now, reply = ARGV[1], ARGV[2], ARGV[3] or '', now_ms(), {'OK'}
if string.find(ended, '\n', 1, true) then error('release: more than a line') end
local tasks = redis.call('SMEMBERS', base .. 'holder:' .. holder)
table.sort(tasks)
local locks, turns = {}, {}
for _, task in ipairs(tasks) do
  local queue, key = split(task)
  check(queue)
  turns[task] = read_turns(queue, {key})[1] or ''
  locks[task] = redis.call('HGET', base .. queue .. ':locks', key)
end
strike_off(holder)
for _, task in ipairs(tasks) do
  local queue, key = split(task)
  unlock(queue, {key}, holder)
  local why = lose_turn(queue, key, turns[task], holder, locks[task], ended, now)
  if task == blamed then
    requeue_crashed(queue, key, why, now)
  else
    append(queue, key, why)
  end
  reply[#reply + 1] = task
end
keep_turns()
wake_for_queued(redis.call('SMEMBERS', base .. 'queues')) -- the dead holder may have taken a token and not used it
wake(now)
return reply
