-- stage: a part of a list goes into a generation that nobody reads yet.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED staging:resource generation cache:resource:generation index:resource:generation:entry
-- ARGV[1] resource  ARGV[2] generation: the stager's nonce  ARGV[3] ms the staging lock lasts from now
-- ARGV[4..] five an object: id  rv  uid  blob  index entries and wake keys
-- Returns: {"OK"} | {"BUSY"} (another ingestor stages this resource) | {"STALE"}
-- Invariant: the generation being read is never staged into.
-- needs: cache
local resource, gen, lock_ms = ARGV[1], ARGV[2], ARGV[3]
local lock = base .. 'staging:' .. resource
local holder = redis.call('GET', lock)
if gen == generation(resource) or (holder and holder ~= gen) then return {'BUSY'} end
redis.call('SET', lock, gen, 'PX', lock_ms)
local objects = objects_key(resource, gen)
for i = 4, #ARGV, 5 do
  local id, entries = ARGV[i], string.match(ARGV[i + 4], '^([^\n]*)\n')
  redis.call('HSET', objects, id, ARGV[i + 1] .. ' ' .. ARGV[i + 2] .. '\n' .. ARGV[i + 4] .. '\n' .. ARGV[i + 3])
  for entry in string.gmatch(entries, '%S+') do redis.call('HSET', index_key(resource, gen, entry), id, '') end
end
return {'OK'}
