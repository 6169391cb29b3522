-- steer: people let no turn of some keys begin, or let them begin again. Each act is kept in the audit stream, for people.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED pauses pauses_kept resuming audit queues queue:held timer waiters wake
-- ARGV[1] "pause" | "limit" (scope "rate QUEUE") | "resume" | "restore" (as the Lease had it) | "kept" (the Lease has these) | "note" (another act)
-- ARGV[2] scope; with "kept" the digest of the pauses, with "note" the act
-- ARGV[3] who and why, in a line for people; for "restore" the text as it was stored
-- Returns: {"OK", 1 where that changed the pauses, else 0} | {"FULL"} (so many scopes are paused already) | {"STALE"}
-- Invariant: a key that a pause keeps from a turn is in its stream, or in "held" and nowhere else; it comes back once no pause is over it.
-- include: queue pauses
local SCOPES_MAX, AUDIT_MAX = 100, 1000
local act, scope, text, now = ARGV[1], ARGV[2], ARGV[3], now_ms()
local pauses = base .. 'pauses'
if string.find(scope .. text, '\n', 1, true) then error('steer: more than a line') end
if not ({pause = true, limit = true, resume = true, restore = true, kept = true, note = true})[act] then error('steer: bad act ' .. act) end
if act == 'kept' then
  redis.call('SET', base .. 'pauses_kept', scope)
  return {'OK', 0}
end
redis.call('HLEN', base .. 'resuming')
redis.call('XLEN', base .. 'audit')
redis.call('LLEN', base .. 'timer')
local there = redis.call('HEXISTS', pauses, scope)
if act == 'pause' or act == 'limit' or act == 'restore' then
  if there == 0 and redis.call('HLEN', pauses) >= SCOPES_MAX then return {'FULL'} end
  redis.call('HSET', pauses, scope, act == 'restore' and text or 'since_ms=' .. number(now) .. ' ' .. text)
elseif act == 'resume' then
  redis.call('HDEL', pauses, scope)
  begin_return()
  wake(64, now)
end
local done = act == 'note' and scope or act .. ' ' .. scope
if act ~= 'restore' then redis.call('XADD', base .. 'audit', 'MAXLEN', AUDIT_MAX, '*', 'act', done .. ': ' .. text) end
return {'OK', act == 'resume' and there or act == 'note' and 0 or 1 - there}
