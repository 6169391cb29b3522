-- stage: put a part of a list into a generation that nobody reads yet.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED staging:resource abandoned republish generation cache:resource:generation index:resource:generation:entry apart:resource:generation
-- DERIVED summary:resource:generation:entry
-- ARGV[1] resource  ARGV[2] generation: the stager's nonce  ARGV[3] ms the staging lock lasts from now
-- ARGV[4..] count and pairs name, bytes of what lies apart or text of a class; then five an object:
--   id  rv  uid, or "uid signature"  blob  index entries and wake keys
-- Returns: {"OK"} | {"BUSY"} (another ingestor stages this resource) | {"STALE"}
-- Invariant: the generation being read is never staged into.
-- include: cache summary
local resource, gen, lock_ms, now = ARGV[1], ARGV[2], whole(ARGV[3]), now_ms()
local parts, first = parts_from(4)
if #ARGV < first - 1 or (#ARGV - first + 1) % 5 ~= 0 then return redis.error_reply('stage: five arguments an object') end
for i = first + 4, #ARGV, 5 do -- check every argument before the first write
  if not storable(ARGV[i - 3], ARGV[i - 2], ARGV[i]) then return redis.error_reply('stage: bad object ' .. ARGV[i - 4]) end
  local line = string.match(ARGV[i], '^[^\n]*')
  local _, class = without_class(line)
  local name = apart_in(line)
  if (name and not parts[name]) or (class and not parts[class]) then
    return redis.error_reply('stage: nothing lies apart for ' .. ARGV[i - 4])
  end
end
local LOCK_MAX_MS = 60000
local lock = base .. 'staging:' .. resource
local holder, until_ms = staging(resource)
if gen == generation(resource) or redis.call('SISMEMBER', base .. 'abandoned', gen) == 1 then return {'BUSY'} end
if holder and holder ~= gen then
  -- Nobody asks for so long a lock: it was set before the clock went back.
  if now < until_ms and until_ms <= now + math.max(lock_ms, LOCK_MAX_MS) then return {'BUSY'} end
  -- Its stager is dead or late. Its generation is dropped, and it can never come back to a list with a hole.
  redis.call('SADD', base .. 'abandoned', holder)
  redis.call('RPUSH', base .. 'republish', 'sweep ' .. resource .. ' ' .. holder .. ' 0')
end
redis.call('SET', lock, 'generation=' .. gen .. ' until_ms=' .. number(now + lock_ms))
local objects, recounted, renamed = objects_key(resource, gen), {}, {}
for i = first, #ARGV, 5 do
  local id, entries = ARGV[i], string.match(ARGV[i + 4], '^([^\n]*)\n')
  local value = ARGV[i + 1] .. ' ' .. ARGV[i + 2] .. '\n' .. ARGV[i + 4] .. '\n' .. ARGV[i + 3]
  if redis.call('HSETNX', objects, id, value) == 0 then -- staged before: a step without an answer is repeated
    local _, _, old_entries = head(redis.call('HGET', objects, id))
    local was, old_class = without_class(old_entries)
    count(recounted, was, old_class, -1)
    count_part(renamed, was, -1)
    redis.call('HSET', objects, id, value)
  end
  local is, class = without_class(entries)
  count(recounted, is, class, 1)
  count_part(renamed, is, 1)
  for entry in indexed(is) do redis.call('HSET', index_key(resource, gen, entry), id, '') end
end
write_parts(resource, gen, renamed, parts)
write_counts(resource, gen, recounted, parts)
return {'OK'}
