-- include: queue
-- Pauses that people ask for.

local function is_paused(scopes, queue, key)
  local namespace = string.match(key, '^(.*)/') or ''
  return scopes['all'] or scopes['queue ' .. queue] or scopes['namespace ' .. namespace] or scopes['key ' .. queue .. ':' .. key]
end

-- The next entries of a queue that no pause is over, at most so many. (The pause of a whole queue leaves its keys where they are.)
-- What a pause is over is taken out of the stream and kept in "held", at most HELD_TOGETHER keys a call; where there may be more of
-- them, the queue is to be asked again.
local HELD_TOGETHER = 500
local function unpaused_entries(scopes, queue, count)
  local stream, states, held, taken_out = base .. queue .. ':stream', base .. queue .. ':state', base .. queue .. ':held', 0
  while true do
    local entries, free = next_entries(queue, count), {}
    for _, entry in ipairs(entries) do
      local key = entry[2][2]
      if is_paused(scopes, queue, key) then
        local _, why = split_state(redis.call('HGET', states, key))
        redis.call('SADD', held, key) -- first: whatever fails after it, a key in "held" is looked at when its pause is over
        redis.call('HSET', states, key, 'held ' .. why)
        if entry[1] then redis.call('XDEL', stream, entry[1]) else redis.call('ZREM', base .. queue .. ':backlog', key) end
        taken_out = taken_out + 1
      else
        free[#free + 1] = entry
      end
    end
    if #free > 0 or #entries == 0 then return free, false end
    if taken_out >= HELD_TOGETHER then return free, true end
  end
end

-- A pause is over: the keys of its queues that were taken out come back with the next calls of due. How far that is stands in "resuming".
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
    if not (scopes and is_paused(scopes, queue, key)) then
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
