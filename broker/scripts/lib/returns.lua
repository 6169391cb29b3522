-- include: pauses limits
-- How keys that were taken out of their queues come back.

-- A pause or a limit is over: the keys of its queues that were taken out come back with the next calls of due. How far that is stands in "resuming".
local function begin_return()
  for _, queue in ipairs(redis.call('SMEMBERS', base .. 'queues')) do
    if redis.call('SCARD', base .. queue .. ':held') > 0 then redis.call('HSET', base .. 'resuming', queue, '0') end
  end
  hurry()
end

-- Queue some of the keys of a queue that were taken out and that no pause is over any more. Returns how many.
local function return_some(scopes, queue, cursor, count, now)
  local held, step, added = base .. queue .. ':held', nil, 0
  step = redis.call('SSCAN', held, cursor, 'COUNT', count)
  table.sort(step[2])
  for _, key in ipairs(step[2]) do
    if not (scopes and (is_paused(scopes, queue, key) or waits_in_line(scopes, queue .. ':' .. key, namespace_of(key)))) then
      local state, why = split_state(redis.call('HGET', base .. queue .. ':state', key))
      redis.call('SREM', held, key) -- first: a removal may run when memory is full
      if state == 'held' then
        why = with_trigger(key, why, 'resumed', now)
        append(queue, key, why)
        added = added + 1
      end
    end
  end
  if step[1] == '0' then redis.call('HDEL', base .. 'resuming', queue) else redis.call('HSET', base .. 'resuming', queue, step[1]) end
  return added
end
