-- include: queue locks
-- Who waits for the cache to pass a resourceVersion. All scores are 0, so members sort by text: (length, rv, task).

local function unread_key(resource) return base .. 'unread:' .. resource end
local function place(rv) return string.format('%02d', #rv) .. rv end

-- The members whose wait is over once the cache is at rv; to be asked for before the first write.
local function readers(resource, rv)
  local members = redis.call('ZRANGEBYLEX', unread_key(resource), '-', '[' .. place(rv) .. ' \255')
  for _, member in ipairs(members) do check((split((string.match(member, '^%d+ (.+)$'))))) end
  return members
end

-- No event need wake an owner for what it changed (a pod it let go wakes others), so the passing itself does.
local function wake_readers(resource, members)
  local added = 0
  for _, member in ipairs(members) do
    added = added + add(split((string.match(member, '^%d+ (.+)$'))))
    redis.call('ZREM', unread_key(resource), member)
  end
  return added
end
