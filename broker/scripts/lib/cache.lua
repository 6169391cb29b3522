-- A cached object is "rv uid\nindex entries\nwake keys\nblob": the first three lines are for scripts, the blob is for readers.

local function head(value)
  local rv, uid, at = string.match(value, '^(%S+) (%S*)\n()')
  local stop = string.find(value, '\n', at, true)
  local stop2 = string.find(value, '\n', stop + 1, true)
  return rv, uid, string.sub(value, at, stop - 1), string.sub(value, stop + 1, stop2 - 1), stop2
end

-- resourceVersions are compared as (length, text): Lua numbers lose digits.
local function newer(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

local function generation(resource) return redis.call('HGET', base .. 'generation', resource) or '0' end

-- Who stages a list of the resource, and until when nobody else may.
local function staging(resource)
  local gen, until_ms = string.match(redis.call('GET', base .. 'staging:' .. resource) or '', '^generation=(%S+) until_ms=(%d+)$')
  return gen, tonumber(until_ms)
end

-- Who waits for the cache to pass a resourceVersion. All scores are 0, so members sort by text: (length, rv, task).
local function unread_key(resource) return base .. 'unread:' .. resource end
local function place(rv) return string.format('%02d', #rv) .. rv end

-- The tasks whose wait is over once the cache is at rv. The caller adds them: no event need wake an owner for what it
-- changed (a pod it let go wakes others), so the passing itself does.
local function take_read(resource, rv)
  local tasks = redis.call('ZRANGEBYLEX', unread_key(resource), '-', '[' .. place(rv) .. ' \255')
  for i, member in ipairs(tasks) do
    redis.call('ZREM', unread_key(resource), member)
    tasks[i] = string.match(member, '^%d+ (.+)$')
  end
  return tasks
end

local function objects_key(resource, gen) return base .. 'cache:' .. resource .. ':' .. gen end
local function index_key(resource, gen, entry) return base .. 'index:' .. resource .. ':' .. gen .. ':' .. entry end
