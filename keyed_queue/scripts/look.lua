-- look: all that is known of a key.
-- KEYS[1] base
-- DERIVED state groups locks leases delayed parked failures errors stream:group ring consumers
-- ARGV[1] key
-- Returns: {"OK", state or "", group, lock or "", ms of lease left, ms until it is due or -1, ms it is parked or -1, failures in a row,
--           text of the last failure, keys queued in its group, groups with queued keys, consumers that called lately, ms it runs or -1}
-- Invariant: reads only.
-- include: locks
local key, now = ARGV[1], now_ms()
local function ms(times, sign)
  local at = redis.call('ZSCORE', times, key)
  return at and number(math.max(0, sign * (tonumber(at) - now))) or '-1'
end
local group, lock = redis.call('HGET', base .. 'groups', key) or '', redis.call('HGET', base .. 'locks', key) or ''
local since_ms = string.match(lock, ' since_ms=(%d+)')
return {
  'OK', redis.call('HGET', base .. 'state', key) or '', group, lock, ms(base .. 'leases', 1), ms(base .. 'delayed', 1),
  ms(base .. 'parked', -1), redis.call('HGET', base .. 'failures', key) or '0', redis.call('HGET', base .. 'errors', key) or '',
  redis.call('XLEN', base .. 'stream:' .. group), redis.call('LLEN', base .. 'ring'),
  redis.call('ZCOUNT', base .. 'consumers', number(now - CLOCK_JUMP_MS), '+inf'), since_ms and number(math.max(0, now - tonumber(since_ms))) or '-1',
}
