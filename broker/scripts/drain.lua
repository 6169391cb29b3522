-- drain: a worker is to take no more keys and to leave, or all workers of a supervisor, which then begins no others.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED holders drains audit waiters queue:wake
-- ARGV[1] "drain" | "undrain" (a supervisor's: it may begin workers again)  ARGV[2] worker or supervisor  ARGV[3] who and why, in a line
-- Returns: {"OK", worker, ...} those that are to leave | {"UNKNOWN"} (no such worker or supervisor) | {"STALE"}
-- Invariant: no key changes its state. A worker that is to leave learns it from its next claim, so it holds none then.
-- include: queue audit waiters
local SILENT_MS = 86400000 -- a supervisor that is drained asks every second whether it still is; one that is gone does not
local act, name, text, now = ARGV[1], ARGV[2], ARGV[3], now_ms()
local holders, drains = base .. 'holders', base .. 'drains'
if act ~= 'drain' and act ~= 'undrain' then error('drain: bad act ' .. act) end
if string.find(name .. text, '\n', 1, true) then error('drain: more than a line') end
redis.call('XLEN', base .. 'audit')
redis.call('ZREMRANGEBYSCORE', drains, '-inf', number(now - SILENT_MS))
if act == 'undrain' then
  if redis.call('ZREM', drains, name) == 0 then return {'UNKNOWN'} end
  audit('undrain ' .. name, text)
  return {'OK'}
end
wake_all(now) -- those that wait ask at once
local flat, leaving, supervises = redis.call('HGETALL', holders), {}, redis.call('ZSCORE', drains, name)
for i = 1, #flat, 2 do
  local supervisor = string.match(flat[i + 1], '^supervisor=(%S+)')
  supervises = supervises or supervisor == name
  if flat[i] == name or supervisor == name then
    if string.sub(flat[i + 1], -6) ~= ' drain' then redis.call('HSET', holders, flat[i], flat[i + 1] .. ' drain') end
    leaving[#leaving + 1] = flat[i]
  end
end
if not supervises and #leaving == 0 then return {'UNKNOWN'} end
table.sort(leaving)
if supervises then redis.call('ZADD', drains, number(now), name) end
audit('drain ' .. name, text)
return {'OK', unpack(leaving)}
