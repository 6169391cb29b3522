-- steer: people let no turn of some keys begin, or let them begin again. Each act is kept in the audit stream, for people.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED pauses pauses_kept resuming audit queues queue:held timer waiters holders queue:wake limited:namespace limits
-- ARGV[1] "pause" | "limit" (a rate) | "set" (a weight) | "resume" | "restore" (as the Lease had it) | "kept" (the Lease has these) | "note" (another act)
-- ARGV[2] scope; with "kept" the digest of the pauses, with "note" the act
-- ARGV[3] who and why, in a line for people; for "restore" the text as it was stored
-- ARGV[4] ms after which a pause ends by itself, or ""
-- Returns: {"OK", 1 where that changed the pauses, else 0} | {"FULL"} (so many scopes are paused already) | {"STALE"}
-- Invariant: a key that a pause or a limit keeps from a turn is in its queue, or in "held" and nowhere else; it comes back once none is over it.
-- include: queue returns limits audit waiters
local SCOPES_MAX = 100
local act, scope, text, for_ms, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4] ~= '' and whole(ARGV[4]) or nil, now_ms()
local pauses = base .. 'pauses'
if string.find(scope .. text, '\n', 1, true) then error('steer: more than a line') end
if not ({pause = true, limit = true, set = true, resume = true, restore = true, kept = true, note = true})[act] then error('steer: bad act ' .. act) end
if act == 'kept' then
  redis.call('SET', base .. 'pauses_kept', scope)
  return {'OK', 0}
end
redis.call('HLEN', base .. 'resuming')
redis.call('XLEN', base .. 'audit')
redis.call('LLEN', base .. 'timer')
redis.call('HLEN', base .. 'limits')
local there = redis.call('HEXISTS', pauses, scope)
if act == 'pause' or act == 'limit' or act == 'set' or act == 'restore' then
  if there == 0 and redis.call('HLEN', pauses) >= SCOPES_MAX then return {'FULL'} end
  local since = 'since_ms=' .. number(now) .. (for_ms and ' until_ms=' .. number(now + for_ms) or '') .. ' '
  redis.call('HSET', pauses, scope, act == 'restore' and text or since .. text)
  if limit_changed(scope, text) then
    begin_return()
    wake_all(now)
  end
  hurry() -- who waits for what is due next has to know of the end of the pause
elseif act == 'resume' then
  redis.call('HDEL', pauses, scope)
  limit_changed(scope, '')
  begin_return()
  wake_all(now)
end
if act ~= 'restore' then audit(act == 'note' and scope or act .. ' ' .. scope, text) end
return {'OK', act == 'resume' and there or act == 'note' and 0 or 1 - there}
