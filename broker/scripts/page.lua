-- page: a part of the cached objects under some index entries, and the watermark it was read at.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED generation watermark cache:resource:generation index:resource:generation:entry summary:resource:generation:entry
-- ARGV[1] resource  ARGV[2] "entry ..."  ARGV[3] objects at most  ARGV[4] bytes at most (some objects are always taken)
-- ARGV[5] generation and ARGV[6] place, as the page before said; "" and "1:0" at first  ARGV[7..] ids it left over
-- Returns: {"OK", watermark or "", generation, place "nth entry:cursor" ("": it ends here), {id left over, ...}, value, ...}
--          | {"MOVED"} the page before is of another generation: begin anew | {"STALE"}
-- Invariant: reads only. An object that is under an entry from the first page to the last is in one of them, maybe in two.
-- include: cache summary
local resource, entries = ARGV[1], {}
local count_max, bytes_max = math.max(1, whole(ARGV[3])), math.max(1, whole(ARGV[4]))
local gen, nth, cursor = generation(resource), string.match(ARGV[6], '^(%d+):(%d+)$')
if ARGV[5] ~= '' and ARGV[5] ~= gen then return {'MOVED'} end
if not nth then return redis.error_reply('page: bad place') end
nth = whole(nth)
for entry in string.gmatch(ARGV[2], '%S+') do entries[#entries + 1] = entry end
local ids, left, seen, bytes, AT_ONCE, STEP = {}, {}, {}, 0, 16, 100
for i = 7, #ARGV do ids[i - 6] = ARGV[i] end
local objects, whole_value = objects_key(resource, gen), whole_of(resource, gen)
local reply = {'OK', redis.call('HGET', base .. 'watermark', resource) or '', gen, '', left}
local function full() return #reply - 5 >= count_max or bytes >= bytes_max end
while true do
  local fresh = {}
  for _, id in ipairs(ids) do
    if not seen[id] then seen[id], fresh[#fresh + 1] = true, id end
  end
  for at = 1, #fresh, AT_ONCE do
    if full() then
      for i = at, #fresh do left[#left + 1] = fresh[i] end
      break
    end
    for _, value in ipairs(redis.call('HMGET', objects, unpack(fresh, at, math.min(at + AT_ONCE - 1, #fresh)))) do
      if value then
        value = whole_value(value)
        reply[#reply + 1], bytes = value, bytes + #value
      end
    end
  end
  if full() or nth > #entries then break end
  local step = redis.call('HSCAN', index_key(resource, gen, entries[nth]), cursor, 'COUNT', STEP)
  cursor, ids = step[1], {}
  for i = 1, #step[2], 2 do ids[#ids + 1] = step[2][i] end
  if cursor == '0' then nth = nth + 1 end
end
if nth <= #entries or #left > 0 then reply[4] = number(nth) .. ':' .. cursor end
return reply
