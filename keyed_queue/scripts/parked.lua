-- parked: the keys that failed too often, the longest parked first.
-- KEYS[1] base
-- DERIVED parked failures errors
-- ARGV[1] keys at most
-- Returns: {"OK", {key, ms since when, failures in a row, text of the last failure}, ...}
-- Invariant: reads only.
local reply, most = {'OK'}, math.max(1, whole(ARGV[1]))
local found = redis.call('ZRANGE', base .. 'parked', 0, most - 1, 'WITHSCORES')
for i = 1, #found, 2 do
  local failures = tonumber(redis.call('HGET', base .. 'failures', found[i]) or 0)
  reply[#reply + 1] = {found[i], found[i + 1], failures, redis.call('HGET', base .. 'errors', found[i]) or ''}
end
return reply
