-- commit_list: the staged generation becomes the cache. Afterwards republish publishes, in chunks, what the list may have changed.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED watermark watermark_at generation staging:resource republish unread:resource queue:state queue:stream queue:backlog queue:rounds
-- DERIVED waiters holders queue:wake pauses
-- ARGV[1] resource  ARGV[2] generation  ARGV[3] resourceVersion of the list
-- Returns: {"OK"} | {"OLD", watermark} (drop the list, watch from there) | {"BUSY"} (the staging lock went to another) | {"STALE"}
-- Invariant: the watermark never goes back. A list older than it is refused.
-- include: cache queue locks reads
local resource, gen, rv, now = ARGV[1], ARGV[2], ARGV[3], now_ms()
local watermarks, jobs, lock = base .. 'watermark', base .. 'republish', base .. 'staging:' .. resource
if staging(resource) ~= gen then return {'BUSY'} end
local mark, old = redis.call('HGET', watermarks, resource), generation(resource)
if mark and newer(mark, rv) then
  redis.call('RPUSH', jobs, 'sweep ' .. resource .. ' ' .. gen .. ' 0')
  redis.call('DEL', lock)
  return {'OLD', mark}
end
local read = readers(resource, rv)
redis.call('RPUSH', jobs, 'keep ' .. resource .. ' ' .. gen .. ' 0')
if old ~= '0' then redis.call('RPUSH', jobs, 'sweep ' .. resource .. ' ' .. old .. ' 0') end
wake_readers(resource, read, now)
wake(now)
redis.call('DEL', lock)
redis.call('HSET', base .. 'generation', resource, gen)
redis.call('HSET', base .. 'watermark_at', resource, number(now))
redis.call('HSET', watermarks, resource, rv)
return {'OK'}
