-- look: cached objects by id or by index entry, read together with their watermark.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED generation watermark cache:resource:generation index:resource:generation:entry
-- ARGV[1] resource  ARGV[2] "ids" | "index"  ARGV[3..] ids, or index entries
-- Returns: {"OK", watermark or "", value, ...} absent ids are left out | {"STALE"}
-- Invariant: reads only.
-- needs: cache
local resource, by = ARGV[1], ARGV[2]
local gen = generation(resource)
local objects, reply = objects_key(resource, gen), {'OK', redis.call('HGET', base .. 'watermark', resource) or ''}
local function take(ids)
  for _, id in ipairs(ids) do
    local value = redis.call('HGET', objects, id)
    if value then reply[#reply + 1] = value end
  end
end
for i = 3, #ARGV do
  if by == 'ids' then take({ARGV[i]}) else take(redis.call('HKEYS', index_key(resource, gen, ARGV[i]))) end
end
return reply
