-- include: queue locks
-- One more trigger of a task. The tasks of many events are gathered first, so that each key is looked at once.
local function note_waking(wakings, task, trigger)
  local waking = wakings[task]
  if waking then
    waking.last, waking.more = trigger, waking.more + 1
    return
  end
  waking = {first = trigger, last = trigger, more = 0}
  waking.queue, waking.key = split(task)
  wakings[task], wakings[#wakings + 1] = waking, waking
end

-- As an add for each trigger. Returns how many keys entered their queue; of each what queued it is then in "why".
local function add_all(wakings, now)
  local by_queue, added = {}, 0
  for _, waking in ipairs(wakings) do
    local of = by_queue[waking.queue] or {keys = {}}
    by_queue[waking.queue], of[#of + 1], of.keys[#of.keys + 1] = of, waking, waking.key
  end
  for queue, of in pairs(by_queue) do
    local states, sets = base .. queue .. ':state', {}
    for at = 1, #of, 4000 do
      local last = math.min(at + 3999, #of)
      for i, text in ipairs(redis.call('HMGET', states, unpack(of.keys, at, last))) do of[at + i - 1].text = text end
    end
    for _, waking in ipairs(of) do
      local state, why, more = nil, '', waking.more
      if waking.text then state, why = asked_for(waking.text) end
      if why ~= '' then more = more + 1 else why = first_why(waking.first, now) end -- a running key that nothing asked for has none
      waking.why = more > 0 and with_trigger(why, waking.last, now, more) or why
      if state then
        sets[#sets + 1], sets[#sets + 2] = waking.key, state .. waking.why
      else
        append(queue, waking.key, waking.why)
        added = added + 1
      end
    end
    for at = 1, #sets, 4000 do redis.call('HSET', states, unpack(sets, at, math.min(at + 3999, #sets))) end
  end
  return added
end
