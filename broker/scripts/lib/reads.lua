-- include: queue locks
-- The keys that wait for the cache to pass a resourceVersion. All scores are 0, so members sort by text: (length, rv, task).

local function unread_key(resource) return base .. 'unread:' .. resource end
local function place(rv) return string.format('%02d', #rv) .. rv end
local function task_in(member) return (string.match(member, '^%d+ (.+)$')) end

-- The members whose wait ends once the cache is at rv. Call it before the first write.
local function readers(resource, rv)
  local members = redis.call('ZRANGEBYLEX', unread_key(resource), '-', '[' .. place(rv) .. ' \255')
  for _, member in ipairs(members) do check((split(task_in(member)))) end
  return members
end

-- An event need not wake the owner that caused it (a pod that an owner let go wakes others). So the passing itself wakes the owner.
local function wake_readers(resource, members, now)
  local added = 0
  for _, member in ipairs(members) do
    local queue, key = split(task_in(member))
    added = added + add(queue, key, 'read ' .. resource, now)
    redis.call('ZREM', unread_key(resource), member)
  end
  return added
end

local function forget_readers(resource, members)
  for at = 1, #members, 5000 do redis.call('ZREM', unread_key(resource), unpack(members, at, math.min(at + 4999, #members))) end
end
