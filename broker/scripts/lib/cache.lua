-- A cached object is "rv uid [seal]\nindex entries\nwake keys\nblob": the first three lines are for scripts, the rest is for readers.

local function head(value)
  local rv, uid, at = string.match(value, '^(%S+) (%S*)[^\n]*\n()')
  local stop = string.find(value, '\n', at, true)
  local stop2 = string.find(value, '\n', stop + 1, true)
  return rv, uid, string.sub(value, at, stop - 1), string.sub(value, stop + 1, stop2 - 1), stop2
end

-- Whether the parts of an object can be told apart again once they are stored as one value. The uid may bring a seal with it.
local function storable(rv, uid, words)
  return string.match(rv, '^%d+$') and string.match(uid, '^%S* ?%S*$') and string.match(words, '^[^\n]*\n[^\n]*$')
end

-- resourceVersions are compared as (length, text): Lua numbers lose digits.
local function newer(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

local function generation(resource) return redis.call('HGET', base .. 'generation', resource) or '0' end

-- Who stages a list of the resource, and until when nobody else may.
local function staging(resource)
  local gen, until_ms = string.match(redis.call('GET', base .. 'staging:' .. resource) or '', '^generation=(%S+) until_ms=(%d+)$')
  return gen, tonumber(until_ms)
end

local function objects_key(resource, gen) return base .. 'cache:' .. resource .. ':' .. gen end
local function index_key(resource, gen, entry) return base .. 'index:' .. resource .. ':' .. gen .. ':' .. entry end
