-- include: cache
-- How many objects of each class lie under an index entry: what a claim hands over in place of the objects where counts suffice.
-- The last word among an object's entries, "#class", says its class under the first of them. A class has a text, which is kept with the
-- count. What follows the first line of the text, and then the uid, ends the blobs of all objects of the class, which are stored without
-- it. Nor are the keys that they wake stored with them: those stand in the first line of the text, behind a blank. A class that begins
-- with "+" is of objects that an owner asks for; the owner's own word "=count" says how many of these it is to have, and that counts
-- suffice while it has so many.

local CLASSES_MAX = 32 -- where there are more, nearly every object is a class of its own

local function summary_key(resource, gen, entry) return base .. 'summary:' .. resource .. ':' .. gen .. ':' .. entry end

-- The entries without the class, and the class or nil.
local function without_class(entries)
  local at = string.find(entries, ' #', 1, true)
  if not at then return entries, nil end
  return string.sub(entries, 1, at - 1), string.sub(entries, at + 2)
end

local function first_entry(entries) return string.match(entries, '^%S+') end

-- The text of the class of objects with this second line, with its count; nil if they have no class.
local function text_of(resource, gen, line)
  local _, class = without_class(line)
  if not class then return nil end
  local text = redis.call('HGET', summary_key(resource, gen, first_entry(line) or ''), class)
  if not text or not string.find(text, '^%d+ [+-]') then error('damaged: text of a class of ' .. resource) end
  return text
end

-- What ends the blobs of objects with this second line, before their uids; false where nothing is left out of them.
local function ending_of(resource, gen, line)
  local text = text_of(resource, gen, line)
  return text and string.match(text, '\n(.*)$') or false
end

-- The keys that objects of a class wake, from its text with or without a count.
local function wakes_in(text) return string.match(text, '^%d* ?[+-][^ \n]* ?([^\n]*)') or '' end

-- Objects as readers get them: a function from the value of one to all of it. Those of a class differ little in their second lines.
local function whole_of(resource, gen)
  local endings = {}
  return function(value)
    local line = index_words(value)
    local ending = endings[line]
    if ending == nil then
      ending = ending_of(resource, gen, line)
      endings[line] = ending
    end
    return ending and value .. ending .. uid_in(value) or value
  end
end

-- Note that an object of a class has come (1) or gone (-1).
local function count(changed, entries, class, by)
  if not class then return end
  local entry = first_entry(entries)
  local classes = changed[entry]
  if not classes then
    classes = {}
    changed[entry] = classes
  end
  classes[class] = (classes[class] or 0) + by
end

-- In the same script as the objects, so that the counts are always theirs. `texts`: of the classes that may be new.
local function write_counts(resource, gen, changed, texts)
  for entry, classes in pairs(changed) do
    local summary, names, sets, gone = summary_key(resource, gen, entry), {}, {}, {}
    for class, by in pairs(classes) do
      if by ~= 0 then names[#names + 1] = class end
    end
    local known = #names > 0 and redis.call('HMGET', summary, unpack(names)) or {}
    for i, class in ipairs(names) do
      local number_before, text = string.match(known[i] or '0 ' .. (texts[class] or ''), '^(%d+) (.*)$')
      local now = number_before + classes[class]
      if now > 0 then sets[#sets + 1], sets[#sets + 2] = class, number(now) .. ' ' .. text
      else gone[#gone + 1] = class end
    end
    if #sets > 0 then redis.call('HSET', summary, unpack(sets)) end
    if #gone > 0 then redis.call('HDEL', summary, unpack(gone)) end
  end
end

-- {"count text", ...} of all objects under an entry, of its two keys; nil if some are not counted, or if not so many are asked for as
-- are there.
local function summary_at_rest(summary, index, asked)
  local objects = redis.call('HLEN', index)
  if objects < asked or (objects > CLASSES_MAX and redis.call('HLEN', summary) > CLASSES_MAX) then return nil end
  local classes, counts, all, good = redis.call('HGETALL', summary), {}, 0, 0
  for i = 1, #classes, 2 do
    local some = tonumber(string.match(classes[i + 1], '^(%d+) ') or '') or 0
    if some < 1 then return nil end -- no script writes such a count
    counts[#counts + 1], all = classes[i + 1], all + some
    if string.byte(classes[i]) == 43 then good = good + some end -- "+"
  end
  return all == objects and good == asked and counts or nil
end
