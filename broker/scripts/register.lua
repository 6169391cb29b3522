-- register: a worker may claim from now on; its queues exist.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED holders seen queues queue:stream drains
-- ARGV[1] holder  ARGV[2] supervisor  ARGV[3..] queues
-- Returns: {"OK"} | {"DRAINED"} (no worker of this supervisor may begin) | {"STALE"}
-- Invariant: only a registered holder can have a lock, so its release leaves no lock behind.
local holder, now = ARGV[1], now_ms()
if redis.call('ZSCORE', base .. 'drains', ARGV[2]) then
  redis.call('ZADD', base .. 'drains', number(now), ARGV[2])
  return {'DRAINED'}
end
redis.call('ZADD', base .. 'seen', number(now), holder)
local queues = ' queues=,' .. table.concat(ARGV, ',', 3) .. ',' -- a comma on both sides of each: for "wake"
redis.call('HSET', base .. 'holders', holder, 'supervisor=' .. ARGV[2] .. ' since_ms=' .. number(now) .. queues)
for i = 3, #ARGV do
  local queue = ARGV[i]
  if redis.call('SADD', base .. 'queues', queue) == 1 then
    redis.pcall('XGROUP', 'CREATE', base .. queue .. ':stream', 'workers', '0', 'MKSTREAM') -- BUSYGROUP: it is there already
  end
end
return {'OK'}
