-- include: queue
-- What happens to a key whose run failed, or whose consumer died with it.

-- The lock is gone already. Failure n waits back_off * 2^(n-1), at most back_off_max. After `retries` retries the key is parked.
-- A consumer's first death, or an add during the run, lets the key run again at once: that run is the retry.
-- Returns what became of the key, and how many failures in a row that makes.
local function fail(key, error_text, dirty, died, now, policy)
  local failures = redis.call('HINCRBY', base .. 'failures', key, 1)
  redis.call('HSET', base .. 'errors', key, error_text)
  if failures > policy.retries then
    redis.call('HSET', base .. 'state', key, 'parked')
    redis.call('ZADD', base .. 'parked', number(now), key)
    return 'parked', failures
  end
  if dirty or (died and failures == 1) then
    append(key)
    return 'queued', failures
  end
  add_after(key, math.max(1, math.min(policy.back_off_ms * 2 ^ math.min(failures - 1, 40), policy.back_off_max_ms)), now)
  return 'delayed', failures
end

local function policy_at(at)
  return {retries = whole(ARGV[at]), back_off_ms = whole(ARGV[at + 1]), back_off_max_ms = whole(ARGV[at + 2])}
end
