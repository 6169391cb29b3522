-- ingest: apply one contiguous batch of watch events. Cache, indexes, keys to wake and watermark change in one step.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED watermark watermark_at generation cache:resource:generation index:resource:generation:entry
-- DERIVED apart:resource:generation summary:resource:generation:entry
-- DERIVED unread:resource queue:state queue:stream queue:backlog queue:rounds
-- DERIVED waiters holders queue:wake changes:resource:generation changes_at:resource:generation pauses
-- ARGV[1] resource  ARGV[2] from: the batch is complete after this resourceVersion  ARGV[3] to: and up to this one
-- ARGV[4] "told" where the keys that the events woke are to be told, for traces; "exactly" where nothing may have been applied after from; else ""
-- ARGV[5..] count and pairs name, bytes of what lies apart or text of a class; then six an event:
--   "set" | "added" | "observed" | "del"  id  rv  uid, or "uid signature", and blob ("" with del)  index entries and wake keys ("a=b c=d\nqueue:key ...")
--   "observed": a set of an object whose status tells of its generation already, to the first of its wake keys; to the others it is "status"
-- Returns: {"OK", keys added, events skipped, with "told" {queue:key, queued since ms, number of the event, ...}}
--          | {"GAP", watermark} | {"NEEDLIST"} | {"STALE"}
-- Invariant: the cache equals the API at the watermark, which never goes back. It is written last, so a replay after a failure does no harm.
-- include: cache queue locks reads changes summary wakings
local resource, from, to = ARGV[1], ARGV[2], ARGV[3]
local parts, first = parts_from(5)
if #ARGV < first - 1 or (#ARGV - first + 1) % 6 ~= 0 then return redis.error_reply('ingest: six arguments an event') end
local watermarks = base .. 'watermark'
local mark = redis.call('HGET', watermarks, resource)
if not mark then return {'NEEDLIST'} end
if newer(from, mark) or (ARGV[4] == 'exactly' and from ~= mark) then return {'GAP', mark} end
local gen, now, added, skipped, logged, recounted, renamed = generation(resource), now_ms(), 0, 0, false, {}, {}
local objects, classed = objects_key(resource, gen), {}
local function check_tasks(wakes)
  for task in string.gmatch(wakes, '%S+') do
    local queue = split(task)
    if not queue then return redis.error_reply('ingest: bad wake key ' .. task) end
    check(queue)
  end
end
for i = first, #ARGV, 6 do -- check every argument before the first write
  local op, lines, bad = ARGV[i], ARGV[i + 5], nil
  local known = op == 'set' or op == 'added' or op == 'observed' or op == 'del'
  if not known or not storable(ARGV[i + 2], ARGV[i + 3], lines) then return redis.error_reply('ingest: bad event ' .. ARGV[i + 1]) end
  local line = string.match(lines, '^[^\n]*')
  if op ~= 'del' and not classed[line] then -- those of a class have the same line
    local _, class = without_class(line)
    local name = apart_in(line)
    if (name and not parts[name]) or (class and not parts[class]) then
      return redis.error_reply('ingest: nothing lies apart for ' .. ARGV[i + 1])
    end
    if class then
      classed[line] = wakes_in(parts[class])
      bad = check_tasks(classed[line])
    end
  end
  bad = bad or check_tasks(string.sub(lines, #line + 2))
  if bad then return bad end
end
-- These are written below and were not read above. One of a wrong type must fail here.
redis.call('ZCARD', changes_key(resource, gen))
redis.call('HLEN', changes_at_key(resource, gen))
redis.call('HLEN', apart_key(resource, gen))
local read = newer(to, mark) and readers(resource, to) or {}

-- Where memory is full, this fails before anything has changed. A script that has begun to write is not stopped for memory any more, so
-- no replay finds an object without its count.
redis.call('HSET', watermarks, resource, mark)

local function reindex(id, was, is)
  local kept = {}
  for entry in indexed(is) do kept[entry] = true end
  for entry in indexed(was) do
    if kept[entry] then kept[entry] = nil else redis.call('HDEL', index_key(resource, gen, entry), id) end
  end
  for entry in pairs(kept) do redis.call('HSET', index_key(resource, gen, entry), id, '') end
end

-- The keys that an object with these two lines wakes.
local function wakes_of(line, wakes)
  if wakes ~= '' then return wakes end
  if not classed[line] then
    local text = text_of(resource, gen, line)
    classed[line] = text and wakes_in(text) or ''
  end
  return classed[line]
end

-- Read once for all events; one may follow another of the same object.
local ids, objects_now, changes, wakings, told = {}, {}, {}, {}, ARGV[4] == 'told' and {} or nil
for i = first, #ARGV, 6 do
  if newer(ARGV[i + 2], mark) then ids[#ids + 1] = ARGV[i + 1] else skipped = skipped + 1 end
end
for at = 1, #ids, 5000 do -- unpack fails near 8000 arguments
  local last = math.min(at + 4999, #ids)
  for i, value in ipairs(redis.call('HMGET', objects, unpack(ids, at, last))) do objects_now[ids[at + i - 1]] = value end
end
for i = first, #ARGV, 6 do
  local op, id, rv = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if newer(rv, mark) then
    local uid, blob, lines = string.match(ARGV[i + 3], '^%S*'), ARGV[i + 4], ARGV[i + 5]
    local stop = string.find(lines, '\n', 1, true)
    local entries = op ~= 'del' and string.sub(lines, 1, stop - 1) or ''
    local wakes = wakes_of(entries, string.sub(lines, stop + 1))
    local old = objects_now[id]
    local old_uid, old_entries, old_wakes, old_blob = '', '', '', nil
    if old then
      local _, stop
      _, old_uid, old_entries, old_wakes, stop = head(old)
      old_wakes = wakes_of(old_entries, old_wakes)
      old_blob = string.sub(old, stop + 1)
    end
    local same = op ~= 'del' and old and old_uid == uid and old_blob == blob and old_entries == entries and old_wakes == wakes
    if not same then
      local about = ' ' .. resource .. '/' .. id
      local trigger, news, own = string.sub(op .. about, 1, TRIGGER_BYTES_MAX), nil, nil
      if op == 'observed' then own, news = string.match(wakes, '^%S+'), string.sub('status' .. about, 1, TRIGGER_BYTES_MAX) end
      for task in string.gmatch(wakes == old_wakes and wakes or old_wakes .. ' ' .. wakes, '%S+') do
        note_waking(wakings, task, task ~= own and news or trigger)
        if told then told[#told + 1], told[#told + 2], told[#told + 3] = task, '', number((i - first) / 6) end
      end
    end
    changes[#changes + 1] = {id, old_entries, entries, not same and (mirrored(old_entries) or mirrored(entries))}
    objects_now[id] = op ~= 'del' and rv .. ' ' .. ARGV[i + 3] .. '\n' .. lines .. '\n' .. blob
  end
end

-- Wake, log, index, object. A replay compares with the objects, so they are written last, and a failure in between repeats the rest.
for _, member in ipairs(read) do note_waking(wakings, task_in(member), 'read ' .. resource) end
added = add_all(wakings, now)
for _, change in ipairs(changes) do
  local id, old_entries, entries, log = unpack(change)
  if log then
    log_change(resource, gen, id)
    logged = true
  end
  local was, old_class = without_class(old_entries)
  local is, class = without_class(entries)
  if class ~= old_class or is ~= was then
    count(recounted, was, old_class, -1)
    count(recounted, is, class, 1)
  end
  if is ~= was then
    reindex(id, was, is)
    count_part(renamed, was, -1)
    count_part(renamed, is, 1)
  end
end
local sets, dels, written = {}, {}, {}
for _, id in ipairs(ids) do
  if not written[id] then
    written[id] = true
    if objects_now[id] then sets[#sets + 1], sets[#sets + 2] = id, objects_now[id] else dels[#dels + 1] = id end
  end
end
for at = 1, #sets, 4000 do redis.call('HSET', objects, unpack(sets, at, math.min(at + 3999, #sets))) end
for at = 1, #dels, 5000 do redis.call('HDEL', objects, unpack(dels, at, math.min(at + 4999, #dels))) end
write_parts(resource, gen, renamed, parts)
write_counts(resource, gen, recounted, parts)
if logged then trim_changes(resource, gen) end
forget_readers(resource, read)
wake(now)
-- A batch that ends below the watermark does not say how old the view is.
if not newer(mark, to) then redis.call('HSET', base .. 'watermark_at', resource, number(now)) end
if newer(to, mark) then redis.call('HSET', watermarks, resource, to) end
for i = 1, told and #told or 0, 3 do told[i + 1] = string.match(wakings[told[i]].why, '^%d*') end
return {'OK', added, skipped, told}
