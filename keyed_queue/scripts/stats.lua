-- stats: how many keys are in which state.
-- KEYS[1] base
-- DERIVED state locks delayed parked failures ring stream:group consumers
-- Returns: {"OK", queued, running, delayed, parked, failing, groups with queued keys, consumers that called lately, ms the oldest waits or -1}
-- Invariant: reads only, and no more than the first 1,000 groups.
-- include: locks
local now, oldest = now_ms(), -1
local running, parked = redis.call('HLEN', base .. 'locks'), redis.call('ZCARD', base .. 'parked')
for _, group in ipairs(redis.call('LRANGE', base .. 'ring', 0, 999)) do
  local entry = redis.call('XRANGE', base .. 'stream:' .. group, '-', '+', 'COUNT', 1)[1]
  oldest = math.max(oldest, now - tonumber(string.match(entry[1], '^%d+')), 0)
end
return {
  'OK', redis.call('HLEN', base .. 'state') - running - parked, running, redis.call('ZCARD', base .. 'delayed'), parked,
  redis.call('HLEN', base .. 'failures'), redis.call('LLEN', base .. 'ring'),
  redis.call('ZCOUNT', base .. 'consumers', number(now - CLOCK_JUMP_MS), '+inf'), number(oldest),
}
