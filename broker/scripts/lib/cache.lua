-- A cached object is "rv uid [signature]\nindex entries\nwake keys\nblob". The first three lines are for scripts, the rest is for readers.

local function head(value)
  local stop = string.find(value, '\n', 1, true)
  local rv, uid = string.match(string.sub(value, 1, stop - 1), '^(%S+) (%S*)')
  local stop2 = string.find(value, '\n', stop + 1, true)
  local stop3 = string.find(value, '\n', stop2 + 1, true)
  return rv, uid, string.sub(value, stop + 1, stop2 - 1), string.sub(value, stop2 + 1, stop3 - 1), stop3
end

-- A claim reads these two of every owner. A pattern would go through the text byte by byte.

local function uid_in(value)
  local blank, last = string.find(value, ' ', 1, true), string.find(value, '\n', 1, true)
  if not blank or not last or blank > last then return nil end
  local next_blank = string.find(value, ' ', blank + 1, true) -- a signature follows, or it is in another line
  return string.sub(value, blank + 1, (next_blank and next_blank < last and next_blank or last) - 1)
end

-- The number in the first of an object's index entries that begins with "=", as text.
local function asked_in(value)
  local first = string.find(value, '\n', 1, true)
  local last = first and string.find(value, '\n', first + 1, true)
  if not last then return nil end
  local at = string.byte(value, first + 1) == 61 and first + 1 or string.find(value, ' =', first + 1, true)
  return at and at < last and string.match(value, '^ ?=(%d+)', at) or nil
end

-- The second line: all index entries.
local function index_words(value)
  local first = string.find(value, '\n', 1, true)
  local last = first and string.find(value, '\n', first + 1, true)
  return last and string.sub(value, first + 1, last - 1) or ''
end

-- The entries that an object is indexed under. A word that begins with "?" or "+" is none: it says where claim is to look for it.
-- Nor is one with "*", which names a part (below), or with "#" or "=": see summary.lua.
local function indexed(entries) return string.gmatch(' ' .. entries, ' ([^%s?+*#=]%S*)') end

-- Whether the parts of an object can be told apart once they are stored as one value. A signature may follow the uid.
local function storable(rv, uid, words)
  return string.match(rv, '^%d+$') and string.match(uid, '^%S* ?%S*$') and string.match(words, '^[^\n]*\n[^\n]*$')
end

-- resourceVersions are compared as (length, text): Lua numbers lose digits.
local function newer(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

-- The words "resource=rv" of the revisions that the cache has to pass for a key. No script writes a long text, and to search one
-- takes the square of its length.
local function each_min_rv(text)
  if #text > 4096 then error('damaged: needs of a key') end
  return string.gmatch(text, '(%S+)=(%S+)')
end

-- No stager gives such a name: somebody else wrote it, and under it every owner would seem to be gone.
local function generation(resource)
  local gen = redis.call('HGET', base .. 'generation', resource) or '0'
  if #gen > 64 or string.find(gen, '[^%w%-]') then error('damaged: generation of ' .. resource) end
  return gen
end

-- The ingestor that stages a list of the resource, and the time until which no other may.
local function staging(resource)
  local gen, until_ms = string.match(redis.call('GET', base .. 'staging:' .. resource) or '', '^generation=(%S+) until_ms=(%d+)$')
  return gen, tonumber(until_ms)
end

local function objects_key(resource, gen) return base .. 'cache:' .. resource .. ':' .. gen end
local function index_key(resource, gen, entry) return base .. 'index:' .. resource .. ':' .. gen .. ':' .. entry end

-- A part that objects have in common is kept apart from them, once, behind the number of those that name it by an entry "*name".
local function apart_key(resource, gen) return base .. 'apart:' .. resource .. ':' .. gen end
local function apart_in(entries)
  local at = string.byte(entries) == 42 and 0 or string.find(entries, ' *', 1, true)
  return at and string.match(entries, '^%*(%x+)', at + 1) or nil -- most have none
end

-- What is kept of a part, and how many objects name it.
local function part_in(value)
  local number_of, bytes = string.match(value, '^(%d+) (.*)$')
  return bytes or error('damaged: a part of objects'), number_of
end

-- Note that an object with these entries has come (1) or gone (-1).
local function count_part(changed, entries, by)
  local name = apart_in(entries)
  if name then changed[name] = (changed[name] or 0) + by end
end

-- In the same script as the objects. `parts`: those that may be new.
local function write_parts(resource, gen, changed, parts)
  local apart = apart_key(resource, gen)
  for name, by in pairs(changed) do
    if by ~= 0 then
      local bytes, before = part_in(redis.call('HGET', apart, name) or '0 ' .. (parts[name] or ''))
      local now = before + by
      if now > 0 then redis.call('HSET', apart, name, number(now) .. ' ' .. bytes) else redis.call('HDEL', apart, name) end
    end
  end
end

-- The parts in ARGV, and the texts of classes, by name; their count is at ARGV[at]. Also the position behind them.
local function parts_from(at)
  local parts, count = {}, whole(ARGV[at])
  if count < 0 or at + 2 * count > #ARGV then error('not so many parts: ' .. ARGV[at]) end
  for i = at + 1, at + 2 * count, 2 do parts[ARGV[i]] = ARGV[i + 1] end
  return parts, at + 1 + 2 * count
end
