-- due: delayed and parked keys whose time has come enter their streams, in the order of their times; and keys whose pause is over, or whose
--   limit lets them go.
-- A pause whose time is over ends first, as if people had ended it.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED queues queue:delayed queue:parked queue:state queue:stream queue:backlog queue:rounds waiters holders queue:wake
-- DERIVED pauses resuming queue:held audit timer limited:namespace limits
-- ARGV[1] entries at most, of each queue and set
-- Returns: {"OK", moved, ms until the next one, or -1} | {"STALE"}
-- Invariant: an entry is removed in the step that adds its key. A delayed entry never unparks its key.
-- include: queue scopes returns limits audit waiters
local limit, now, moved = whole(ARGV[1]), now_ms(), 0
local queues = redis.call('SMEMBERS', base .. 'queues')
for _, queue in ipairs(queues) do check(queue) end
redis.call('HLEN', base .. 'resuming')
redis.call('XLEN', base .. 'audit')
redis.call('HLEN', base .. 'limits')
local next_at, ended = nil, {}
for scope, text in pairs(paused_scopes() or {}) do
  local at = tonumber(string.match(text, '^since_ms=%d+ until_ms=(%d+)') or '')
  if at and at <= now then ended[#ended + 1] = scope
  elseif at then next_at = math.min(next_at or at, at) end
end
table.sort(ended)
for _, scope in ipairs(ended) do
  redis.call('HDEL', base .. 'pauses', scope)
  limit_changed(scope, '')
  audit('resume ' .. scope, 'by=oarlock its time is over')
end
if #ended > 0 then
  begin_return()
  wake_all(now)
end
local resuming = redis.call('HGETALL', base .. 'resuming')
for _, queue in ipairs(queues) do
  for _, set in ipairs({':delayed', ':parked'}) do
    local zset = base .. queue .. set
    for _, key in ipairs(redis.call('ZRANGEBYSCORE', zset, '-inf', number(now), 'LIMIT', 0, limit)) do
      redis.call('ZREM', zset, key)
      if set == ':parked' then unpark(queue, key, 'parked', now) else add(queue, key, 'due', now) end
      moved = moved + 1
    end
    local first = redis.call('ZRANGE', zset, 0, 0, 'WITHSCORES')[2]
    if first and (not next_at or tonumber(first) < next_at) then next_at = tonumber(first) end
  end
end
if #resuming > 0 then
  local scopes = paused_scopes()
  for i = 1, #resuming, 2 do moved = moved + return_some(scopes, resuming[i], resuming[i + 1], limit, now) end
  if redis.call('EXISTS', base .. 'resuming') == 1 then next_at = now end
end
local scopes, limited = paused_scopes() or {}, {}
for scope in pairs(scopes['all'] and {} or scopes) do limited[#limited + 1] = limited_namespace(scope) end
table.sort(limited)
for _, namespace in ipairs(limited) do
  local returned, at = advance_line(scopes, namespace, limit, now)
  moved = moved + returned
  if at then next_at = math.min(next_at or at, at) end
end
wake(now)
return {'OK', moved, next_at and math.max(0, math.ceil(next_at - now)) or -1}
