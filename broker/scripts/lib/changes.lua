-- include: cache summary
-- The change log of a generation, for workers that keep its mirrored objects in memory: they ask for the changes since a version.
-- An object is mirrored while its index entries have the word 'mirror'. A version is "generation:seq". A new generation begins with
-- an empty log.

local function changes_key(resource, gen) return base .. 'changes:' .. resource .. ':' .. gen end
local function changes_at_key(resource, gen) return base .. 'changes_at:' .. resource .. ':' .. gen end

local function mirrored(entries)
  return string.find(entries, 'mirror', 1, true) and string.find(' ' .. entries .. ' ', ' mirror ', 1, true)
end

-- Call it before the object is written: one change under two numbers does no harm, but one without a number would never be seen.
local function log_change(resource, gen, id)
  local seq = redis.call('HINCRBY', changes_at_key(resource, gen), 'seq', 1)
  redis.call('ZADD', changes_key(resource, gen), number(seq), id)
end

-- The log keeps the id of an object that is gone, so that readers hear of it, but not for ever. A version below the floor gets all.
local function trim_changes(resource, gen)
  local living = redis.call('HLEN', index_key(resource, gen, 'mirror'))
  local logged = redis.call('ZCARD', changes_key(resource, gen))
  if logged <= 2 * living + 1000 then return end
  local last = logged - living - 501 -- so that the next trim is as far away as it costs
  local floor = redis.call('ZRANGE', changes_key(resource, gen), last, last, 'WITHSCORES')[2]
  redis.call('HSET', changes_at_key(resource, gen), 'floor', number(floor)) -- first: a log shorter than its floor says loses changes
  redis.call('ZREMRANGEBYRANK', changes_key(resource, gen), 0, last)
end

-- {resource, version, 1 when full, {id, value, ...}, {gone ids}}; version "" where the resource was never listed. Of more than `most`
-- none is handed over: {resource, version, 2, {}, {}} leaves all there is to be read without a script.
local function changes_since(resource, gen, known, most)
  if redis.call('HEXISTS', base .. 'watermark', resource) == 0 then return {resource, '', 0, {}, {}} end
  local at = redis.call('HMGET', changes_at_key(resource, gen), 'seq', 'floor')
  local seq, floor = tonumber(at[1] or 0), tonumber(at[2] or 0)
  local of, since = string.match(known, '^(.*):(%d+)$')
  since = tonumber(since)
  local full, changed, gone = of ~= gen or since < floor or since > seq, {}, {}
  local reply = {resource, gen .. ':' .. number(seq), full and 1 or 0, changed, gone}
  if not full and since == seq then return reply end
  local objects, mirror, whole_value = objects_key(resource, gen), index_key(resource, gen, 'mirror'), whole_of(resource, gen)
  local count = full and redis.call('HLEN', mirror) or redis.call('ZCOUNT', changes_key(resource, gen), '(' .. number(since), '+inf')
  if count > most then
    reply[3] = 2
    return reply
  end
  local ids = full and redis.call('HKEYS', mirror) or redis.call('ZRANGEBYSCORE', changes_key(resource, gen), '(' .. number(since), '+inf')
  for at_id = 1, #ids, 5000 do -- unpack fails near 8000 arguments
    local last = math.min(at_id + 4999, #ids)
    local values = redis.call('HMGET', objects, unpack(ids, at_id, last))
    local kept = full or redis.call('HMGET', mirror, unpack(ids, at_id, last))
    for i, value in ipairs(values) do
      local id = ids[at_id + i - 1]
      if value and (full or kept[i]) then
        changed[#changed + 1], changed[#changed + 2] = id, whole_value(value)
      elseif not full then
        gone[#gone + 1] = id
      end
    end
  end
  return reply
end
