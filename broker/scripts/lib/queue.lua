-- include: lanes weights
-- The states of a key and the moves between them. A key without a state is idle. Behind the word stands what queued it since its last claim:
-- for people, and for its lane.

-- How many keys have entered each queue in this script. For each of them one worker may go that waits for keys of the queue: it gets a token
-- on the queue's wake list. There are never more tokens than such workers, so an idle fleet stays idle.
local came = {}
local function wake(now)
  if not next(came) then return end
  local function waiters(...)
    local names = redis.call('ZRANGEBYSCORE', base .. 'waiters', number(now), '+inf', ...)
    return #names > 0 and redis.call('HMGET', base .. 'holders', unpack(names)) or names
  end
  local waiting, all = waiters('LIMIT', 0, 8), false -- most often the first few are enough
  for queue, count in pairs(#waiting > 0 and came or {}) do
    local tokens, serves, i = base .. queue .. ':wake', ',' .. queue .. ',', 1
    local there = redis.call('LLEN', tokens)
    while count > 0 and i <= #waiting do
      if waiting[i] and string.find(waiting[i], serves, 1, true) then
        if there > 0 then there = there - 1
        else
          redis.call('LPUSH', tokens, 'key')
          count = count - 1
        end
      end
      i = i + 1
      if i == 9 and not all then waiting, all = waiters(), true end
    end
  end
  came = {}
end

-- Redis does not roll back. A key of a wrong type must end a script before its first write: later, the script could lose a key it moves.
local checked = {}
local function check(queue)
  if checked[queue] then return end
  local own = base .. queue
  redis.call('XLEN', own .. ':stream')
  for _, hash in ipairs({':state', ':locks', ':failures', ':crashes', ':bucket', ':needs', ':unsettled', ':turns', ':history'}) do
    redis.call('HLEN', own .. hash)
  end
  redis.call('SCARD', own .. ':held')
  for _, zset in ipairs({own .. ':backlog', own .. ':rounds', own .. ':delayed', own .. ':parked', base .. 'leases', base .. 'waiters'}) do
    redis.call('ZCARD', zset)
  end
  redis.call('LLEN', own .. ':wake')
  redis.call('LLEN', base .. 'timer')
  checked[queue] = true
end

-- The values of these keys in a hash that mostly has none: then they need not be asked for one by one. No value is nil or false.
local function values_of(hash, keys)
  return redis.call('HLEN', hash) > 0 and redis.call('HMGET', hash, unpack(keys)) or {}
end

local function split_state(text) return string.match(text or '', '^(%S*) ?(.*)$') end

-- The stream is the front of a queue: first come, first served. A key that comes while the front is full, or while others wait, waits in
-- the backlog. There each lane of a namespace has one key in so many rounds. A claim takes from the backlog what it does not find in the
-- front. A key's place is fixed when it comes, so nobody starves.
local FRONT = 32
local STEPS = {[0] = 1, 0.5, 0.75, 4} -- rounds from one key to the next of the same namespace, by lane
-- A place is the round, the lane, and eight digits of the ms at which the key came.
local SCALE = 100000000
local ROUND = 4 * SCALE

local function namespace_of(key) return string.match(key, '^(.*)/') or '' end

-- Of a queue, once a script: how many keys its front takes yet, how many wait, and the round that is served. Scripts that append remove nothing.
local fronts = {}
local function front_of(queue)
  local front = fronts[queue]
  if not front then
    local first = redis.call('ZRANGE', base .. queue .. ':backlog', 0, 0, 'WITHSCORES')[2]
    front = {first = first, round = first and math.floor(first / ROUND) or 0, room = 0, waiting = 0, next = {}}
    if first then front.waiting = redis.call('ZCARD', base .. queue .. ':backlog')
    else front.room = FRONT - redis.call('XLEN', base .. queue .. ':stream') end
    fronts[queue] = front
  end
  return front
end

-- Give a key the next place of its namespace in the lane, if it is before the place that it has. That is some rounds after the last one, or
-- in the round that is served. With a weight of 4 it is a fourth of those rounds, so four keys of lane 0 have a place in each. Keys that
-- moved up leave places empty: a key waits for no more places than there are keys that wait.
local function line_up(queue, key, lane, front, place_now)
  local rounds, namespace = base .. queue .. ':rounds', namespace_of(key)
  local mine, step = lane .. ' ' .. namespace, STEPS[lane] / weight_of(namespace)
  if not front.at then
    if not front.first then redis.call('DEL', rounds) end -- nobody waited: the rounds begin anew
    front.at = now_ms() % SCALE
  end
  local round = front.next[mine] or tonumber(redis.call('ZSCORE', rounds, mine) or 0)
  round = math.min(math.max(round, front.round), front.round + (front.waiting + 1) * step)
  local place = math.floor(round + 1e-6) * ROUND + lane * SCALE + front.at
  if place_now and place >= place_now then return end
  front.next[mine] = round + step
  if not place_now then front.waiting = front.waiting + 1 end
  redis.call('ZADD', rounds, string.format('%.17g', front.next[mine]), mine) -- a lane or a weight makes it no whole number
  redis.call('ZADD', base .. queue .. ':backlog', number(place), key)
end

-- The only place where a key enters a queue. The caller knows that it is not there yet.
local function append(queue, key, why)
  local front = front_of(queue)
  if front.room > 0 then
    front.room = front.room - 1
    redis.call('XADD', base .. queue .. ':stream', '*', 'key', key)
  else
    line_up(queue, key, lane_of_why(key, why), front)
  end
  redis.call('HSET', base .. queue .. ':state', key, 'queued ' .. why)
  came[queue] = (came[queue] or 0) + 1
end

-- A key that is queued is asked for in a more urgent lane.
local function move_up(queue, key, why)
  local front = front_of(queue)
  if not (front.first or front.at) then return end -- nobody waits
  local place = redis.call('ZSCORE', base .. queue .. ':backlog', key)
  if place then line_up(queue, key, lane_of_why(key, why), front, tonumber(place)) end
end

-- The next entries of a queue, at most so many: {id in the stream, or false, {'key', key}, place in the backlog}. They stay where they are.
local function next_entries(queue, count)
  local entries = redis.call('XRANGE', base .. queue .. ':stream', '-', '+', 'COUNT', count)
  local room = count - #entries
  if room > 0 then
    local waiting = redis.call('ZRANGE', base .. queue .. ':backlog', 0, room - 1, 'WITHSCORES')
    for i = 1, #waiting, 2 do entries[#entries + 1] = {false, {'key', waiting[i]}, waiting[i + 1]} end
  end
  return entries
end

-- Keys leave the backlog for a worker. What a lane had up to the round that is served puts it behind nobody any more.
local function leave_backlog(queue, keys, last_place)
  redis.call('ZREM', base .. queue .. ':backlog', unpack(keys))
  redis.call('ZREMRANGEBYSCORE', base .. queue .. ':rounds', '-inf', number(math.floor(last_place / ROUND)))
  redis.pcall('INCRBY', base .. queue .. ':passed', #keys) -- for people alone: whatever stands there ends no epoch
end

-- A token for the supervisors: a key is due before the time until which they sleep.
local function hurry()
  local timer = base .. 'timer'
  if redis.call('LLEN', timer) == 0 then redis.call('LPUSH', timer, 'due') end
end

-- client-go's Add. An idle key is queued. A running one is marked, so that its finish queues it. All others are to be queued anyway.
-- Returns 1 where the key entered its queue, else 0; and what queued it.
local ARRANGED = {queued = true, ['running+'] = true, parked = true, held = true}
local function asked_for(text)
  local state, why = split_state(text)
  if state == 'running' then return 'running+ ', why end
  if not ARRANGED[state] then error('damaged: state of a key') end
  return state .. ' ', why
end
local function add(queue, key, trigger, now)
  local states = base .. queue .. ':state'
  local text = redis.call('HGET', states, key)
  if not text then
    local first = first_why(trigger, now)
    append(queue, key, first)
    return 1, first
  end
  local state, why = asked_for(text)
  local more_urgent
  why, more_urgent = with_trigger(key, why, trigger, now)
  redis.call('HSET', states, key, state .. why)
  if more_urgent and state == 'queued ' then move_up(queue, key, why) end
  return 0, why
end

-- A key that was parked is queued. The caller takes it out of the parked.
local function unpark(queue, key, trigger, now)
  local _, why = split_state(redis.call('HGET', base .. queue .. ':state', key))
  why = with_trigger(key, why, trigger, now)
  append(queue, key, why)
  return 1
end

-- client-go's AddAfter: the earlier of two times wins. A supervisor that sleeps until a later time is woken.
local function add_after(queue, key, delay_ms, now)
  if delay_ms <= 0 then add(queue, key, 'due', now) return end
  local delayed, due = base .. queue .. ':delayed', now + delay_ms
  local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
  redis.call('ZADD', delayed, 'LT', number(due), key)
  if not first or due < tonumber(first) then hurry() end
end

-- client-go's default limiter: the later of 5 ms * 2^failures (at most 1000 s) and a bucket of 10/s, burst 100, which the queue shares.
local function back_off_ms(queue, key, now)
  local failures = redis.call('HINCRBY', base .. queue .. ':failures', key, 1)
  local own = failures > 18 and 1000000 or math.min(5 * 2 ^ (failures - 1), 1000000)
  local bucket = base .. queue .. ':bucket'
  local state = redis.call('HMGET', bucket, 'tokens', 'at_ms')
  local at = tonumber(state[2]) or now
  local tokens = math.min(100, (tonumber(state[1]) or 100) + math.max(0, now - at) / 100) - 1
  redis.call('HSET', bucket, 'tokens', string.format('%.2f', tokens), 'at_ms', number(now))
  return math.max(own, tokens < 0 and math.ceil(-tokens * 100 - 0.001) or 0), failures
end
