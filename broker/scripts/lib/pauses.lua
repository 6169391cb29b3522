-- include: queue limits
-- Pauses that people ask for.

local function is_paused(scopes, queue, key)
  return scopes['all'] or scopes['queue ' .. queue] or scopes['namespace ' .. namespace_of(key)] or scopes['key ' .. queue .. ':' .. key]
end

-- The next entries of a queue that no pause is over and that may begin, at most so many. (The pause of a whole queue leaves its keys where
-- they are.) The others are taken out of the stream and kept in "held", at most 500 keys a call; where there may be more of
-- them, the queue is to be asked again.
local function unpaused_entries(scopes, queue, count, now)
  local stream, states, held, taken_out = base .. queue .. ':stream', base .. queue .. ':state', base .. queue .. ':held', 0
  while true do
    local entries, free = next_entries(queue, count), {}
    for _, entry in ipairs(entries) do
      local key = entry[2][2]
      if is_paused(scopes, queue, key) or not may_begin(scopes, queue .. ':' .. key, namespace_of(key), now) then
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
    if taken_out >= 500 then return free, true end
  end
end
