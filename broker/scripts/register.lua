-- register: a worker may claim from now on; its queues exist.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED holders seen queues queue:stream
-- ARGV[1] holder  ARGV[2] supervisor  ARGV[3..] queues
-- Returns: {"OK"} | {"STALE"}
-- Invariant: only a registered holder can have a lock, so releasing it leaves no lock behind.
local now = now_ms()
redis.call('ZADD', base .. 'seen', number(now), ARGV[1])
redis.call('HSET', base .. 'holders', ARGV[1], 'supervisor=' .. ARGV[2] .. ' since_ms=' .. number(now))
for i = 3, #ARGV do
  if redis.call('SADD', base .. 'queues', ARGV[i]) == 1 then
    redis.pcall('XGROUP', 'CREATE', base .. ARGV[i] .. ':stream', 'workers', '0', 'MKSTREAM') -- BUSYGROUP: it is there already
  end
end
return {'OK'}
