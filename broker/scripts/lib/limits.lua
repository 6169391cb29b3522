-- include: queue
-- Limits: at most so many turns a second begin for the keys of a namespace. A claim takes the keys out of their queue that must not begin
-- yet. They are "held", and wait in line. From the line they come back into their queues at the limit's pace (due).

-- "limited:NAMESPACE" has the line: task -> its place. Below 0 stand the places of those that have left it and are queued: if a claim finds
-- more of them than may begin, because workers stood still, they go back to where they stood. So nobody passes them.
local IN_LINE = '(0'
local LATE_MS = 200 -- how far a line may be behind its pace and catch up
local LOOK_MS = 20 -- what may leave it within that time leaves it together
local beginning = {} -- namespace -> how many of its keys this claim lets begin

-- The rate of a namespace, and the key of its line; nil where it has no limit.
local function limit_of(scopes, namespace)
  local rate = scopes and number_in(scopes['rate namespace ' .. namespace], 'rate')
  if rate then return rate, base .. 'limited:' .. namespace end
end

local function limited_namespace(scope) return string.match(scope, '^rate namespace (.*)$') end

local function keep_pace(namespace, next_ms, filled_ms)
  redis.call('HSET', base .. 'limits', namespace, string.format('%.3f %.3f', next_ms, filled_ms))
end

-- When the next key may leave the line; and the bucket of the turns, as the time since when it would be filled. It holds what the rate brings
-- in a second, but at least one turn. Where Redis's clock went back both begin anew: they do not wait for that time to come again.
local function pace_of(namespace, rate, now)
  local each_ms, text = 1000 / rate, redis.call('HGET', base .. 'limits', namespace) or ''
  local next_ms, filled_ms = string.match(text, '^(%S+) (%S+)$')
  next_ms, filled_ms = tonumber(next_ms or now) or now, tonumber(filled_ms or 0) or 0
  if next_ms > now + each_ms + 2 or filled_ms > now + 2 then -- by more than what is rounded
    redis.call('HDEL', base .. 'limits', namespace)
    next_ms, filled_ms = now, 0
  end
  return next_ms, math.max(filled_ms, now - math.max(each_ms, 1000))
end

-- The last place that was given in a line, or 0; and whether somebody waits there.
local function last_place(line)
  local first, last = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')[2], redis.call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]
  if not first then return 0, false end
  return math.max(-tonumber(first), tonumber(last)), tonumber(last) > 0
end

-- Whether the turn of a queued key may begin. Else it is in line. A key that comes anew begins at once only if there is no line.
local function may_begin(scopes, task, namespace, now)
  local rate, line = limit_of(scopes, namespace)
  if not rate then return true end
  local next_ms, filled_ms = pace_of(namespace, rate, now)
  local some = beginning[namespace] or 0
  local free = math.floor((now - filled_ms) * rate / 1000 + 1e-6) > some
  local place = tonumber(redis.call('ZSCORE', line, task) or 0)
  local last, waiting = last_place(line)
  if place == 0 then
    free, place = free and last == 0 and next_ms <= now, -(last + 1)
    if free then keep_pace(namespace, math.max(next_ms, now) + 1000 / rate, filled_ms) end
  elseif place > 0 then
    free = false
  elseif not free then -- it comes back as soon as the bucket has a turn for it
    keep_pace(namespace, math.min(next_ms, filled_ms + (some + 1) * 1000 / rate), filled_ms)
  end
  if free then beginning[namespace] = some + 1
  elseif not waiting then hurry() end
  redis.call('ZADD', line, number(free and place or math.abs(place)), task)
  return free
end

-- A key that waits in line comes back from there, and whatever pause ends, not before.
local function waits_in_line(scopes, task, namespace)
  local rate, line = limit_of(scopes, namespace)
  return rate and tonumber(redis.call('ZSCORE', line, task) or 0) > 0
end

local function turn_begins(scopes, task, namespace, now)
  local rate, line = limit_of(scopes, namespace)
  if not rate then return end
  local next_ms, filled_ms = pace_of(namespace, rate, now)
  redis.call('ZREM', line, task)
  keep_pace(namespace, next_ms, filled_ms + 1000 / rate)
end

-- What stands under a scope has changed. Returns whether that ended a limit: then those in line are held by nothing.
local function limit_changed(scope, text)
  local namespace = limited_namespace(scope)
  if namespace then redis.call('HDEL', base .. 'limits', namespace) end -- another pace begins at once
  if not namespace or number_in(text, 'rate') then return false end
  redis.call('UNLINK', base .. 'limited:' .. namespace)
  return true
end

-- Queue the keys whose time has come. Returns how many, and when the next one may go; nil where no other is in line.
local function advance_line(scopes, namespace, count, now)
  local rate, line = limit_of(scopes, namespace)
  if not rate or redis.call('ZCOUNT', line, IN_LINE, '+inf') == 0 then return 0, nil end
  local next_ms, filled_ms = pace_of(namespace, rate, now)
  next_ms = math.max(next_ms, now - LATE_MS)
  if next_ms <= now then
    count = math.min(count, math.floor((now - next_ms) * rate / 1000) + 1)
    local first, added = redis.call('ZRANGEBYSCORE', line, IN_LINE, '+inf', 'WITHSCORES', 'LIMIT', 0, count), 0
    for i = 1, #first, 2 do
      local queue, key = string.match(first[i], '^([^:]+):(.*)$')
      local states, held = base .. queue .. ':state', base .. queue .. ':held'
      local state, why = split_state(redis.call('HGET', states, key))
      redis.call('SREM', held, key) -- first: a removal may run when memory is full
      redis.call('ZADD', line, number(-first[i + 1]), first[i])
      if state == 'held' then
        append(queue, key, why)
        added = added + 1
      end
    end
    next_ms = next_ms + #first / 2 * 1000 / rate
    keep_pace(namespace, next_ms, filled_ms)
    if redis.call('ZCOUNT', line, IN_LINE, '+inf') == 0 then return added, nil end
    return added, math.max(next_ms, now + LOOK_MS)
  end
  return 0, math.max(next_ms, now + LOOK_MS)
end
