-- A cached object is "rv uid [seal]\nindex entries\nwake keys\nblob": the first three lines are for scripts, the rest is for readers.

local function head(value)
  local stop = string.find(value, '\n', 1, true)
  local rv, uid = string.match(string.sub(value, 1, stop - 1), '^(%S+) (%S*)')
  local stop2 = string.find(value, '\n', stop + 1, true)
  local stop3 = string.find(value, '\n', stop2 + 1, true)
  return rv, uid, string.sub(value, stop + 1, stop2 - 1), string.sub(value, stop2 + 1, stop3 - 1), stop3
end

-- Of an object's entries those it is indexed under: a word that begins with "?" or "+" says where claim is to look for it.
local function indexed(entries) return string.gmatch(' ' .. entries, ' ([^%s?+]%S*)') end

-- Whether the parts of an object can be told apart again once they are stored as one value. The uid may bring a seal with it.
local function storable(rv, uid, words)
  return string.match(rv, '^%d+$') and string.match(uid, '^%S* ?%S*$') and string.match(words, '^[^\n]*\n[^\n]*$')
end

-- resourceVersions are compared as (length, text): Lua numbers lose digits.
local function newer(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

-- The words "resource=rv" of a key's needs. Searching a long text for them takes the square of its length: nobody writes one.
local function each_need(text)
  if #text > 4096 then error('damaged: needs of a key') end
  return string.gmatch(text, '(%S+)=(%S+)')
end

-- A name that no stager would give says that somebody else wrote there: what is read under it is nothing, for every owner.
local function generation(resource)
  local gen = redis.call('HGET', base .. 'generation', resource) or '0'
  if #gen > 64 or string.find(gen, '[^%w%-]') then error('damaged: generation of ' .. resource) end
  return gen
end

-- Who stages a list of the resource, and until when nobody else may.
local function staging(resource)
  local gen, until_ms = string.match(redis.call('GET', base .. 'staging:' .. resource) or '', '^generation=(%S+) until_ms=(%d+)$')
  return gen, tonumber(until_ms)
end

local function objects_key(resource, gen) return base .. 'cache:' .. resource .. ':' .. gen end
local function index_key(resource, gen, entry) return base .. 'index:' .. resource .. ':' .. gen .. ':' .. entry end

-- What objects have in common is kept apart from them, once, for as long as one of them is indexed under it.
local function apart_key(resource, gen) return base .. 'apart:' .. resource .. ':' .. gen end
local function apart_in(entries) return string.match(' ' .. entries, ' apart=(%x+)') end

-- The parts in ARGV, by name, from a count on; and where what follows them begins.
local function parts_from(at)
  local parts, count = {}, whole(ARGV[at])
  if count < 0 or at + 2 * count > #ARGV then error('not so many parts: ' .. ARGV[at]) end
  for i = at + 1, at + 2 * count, 2 do parts[ARGV[i]] = ARGV[i + 1] end
  return parts, at + 1 + 2 * count
end
