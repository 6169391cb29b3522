-- look: cached objects by id or by index entry, or parts that are kept apart, read together with the watermark.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED generation watermark cache:resource:generation index:resource:generation:entry summary:resource:generation:entry
-- DERIVED apart:resource:generation
-- ARGV[1] resource  ARGV[2] "ids" | "index" | "apart"  ARGV[3..] ids, index entries, or names
-- Returns: {"OK", watermark or "", value, ...} absent ids are left out, an object under several entries is there once | {"STALE"}
-- Invariant: reads only.
-- include: cache summary
local resource, by = ARGV[1], ARGV[2]
local gen = generation(resource)
local objects = by == 'apart' and apart_key(resource, gen) or objects_key(resource, gen)
local whole_value = by == 'apart' and part_in or whole_of(resource, gen)
local reply = {'OK', redis.call('HGET', base .. 'watermark', resource) or ''}
local function take(ids)
  for at = 1, #ids, 5000 do -- unpack fails near 8000 arguments
    local values = redis.call('HMGET', objects, unpack(ids, at, math.min(at + 4999, #ids)))
    for _, value in ipairs(values) do if value then reply[#reply + 1] = (whole_value(value)) end end
  end
end
if by ~= 'index' then
  local ids = {}
  for i = 3, #ARGV do ids[i - 2] = ARGV[i] end
  take(ids)
else
  local ids, seen = {}, {}
  for i = 3, #ARGV do
    for _, id in ipairs(redis.call('HKEYS', index_key(resource, gen, ARGV[i]))) do
      if not seen[id] then seen[id], ids[#ids + 1] = true, id end
    end
  end
  take(ids)
end
return reply
