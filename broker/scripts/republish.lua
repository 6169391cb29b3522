-- republish: after a list, walk the new and the old generation in chunks. Wake every key, then drop the old generation.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED republish cache:resource:generation index:resource:generation:entry queue:state queue:stream queue:backlog queue:rounds
-- DERIVED waiters holders queue:wake
-- DERIVED changes:resource:generation changes_at:resource:generation apart:resource:generation
-- DERIVED summary:resource:generation:entry pauses
-- ARGV[1] objects a step
-- Returns: {"OK", keys added, steps still to do (0: finished)} | {"STALE"}
-- Invariant: the cursor moves in the step that publishes. A generation is dropped only once its wake keys are published.
-- include: cache queue locks changes summary
local jobs, count, now, added = base .. 'republish', whole(ARGV[1]), now_ms(), 0
local job = redis.call('LINDEX', jobs, 0)
if not job then return {'OK', 0, 0} end
local mode, resource, gen, cursor = string.match(job, '^(%S+) (%S+) (%S+) (%S+)$')
local objects = objects_key(resource, gen)

-- A class that is dropped wakes its keys once, and not with each of its objects: its text goes with the first of them.
local function last_wakes_of(places, class)
  local summary = summary_key(resource, gen, first_entry(places))
  local text = redis.call('HGET', summary, class)
  redis.call('HDEL', summary, class)
  return text and wakes_in(text) or ''
end

local step = redis.call('HSCAN', objects, cursor, 'COUNT', count)
for i = 1, #step[2], 2 do
  local _, _, entries, wakes = head(step[2][i + 1])
  local places, class = without_class(entries)
  if class then wakes = mode == 'keep' and wakes_in(text_of(resource, gen, entries)) or last_wakes_of(places, class) end
  for task in string.gmatch(wakes, '%S+') do
    local queue, key = split(task)
    added = added + add(queue, key, 'list ' .. resource, now)
  end
  if mode == 'sweep' then
    for entry in indexed(places) do redis.call('UNLINK', index_key(resource, gen, entry)) end
  end
end
if step[1] == '0' then
  redis.call('LPOP', jobs)
  if mode == 'sweep' then
    redis.call('UNLINK', objects, changes_key(resource, gen), changes_at_key(resource, gen), apart_key(resource, gen))
  end
else
  redis.call('LSET', jobs, 0, table.concat({mode, resource, gen, step[1]}, ' '))
end
wake(now)
return {'OK', added, redis.call('LLEN', jobs)}
