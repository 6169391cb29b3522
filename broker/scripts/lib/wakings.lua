-- include: queue locks
-- One more trigger of a task. The tasks of many events are gathered first, so that each key is looked at once.
local function note_waking(wakings, task, trigger)
  local waking = wakings[task]
  if waking then
    if not waking.last or lane_of(waking.key, trigger) <= lane_of(waking.key, waking.last) then waking.last = trigger end
    waking.more = waking.more + 1
    return
  end
  waking = {first = trigger, more = 0}
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
      local key, last, more, state, why, more_urgent = waking.key, waking.last, waking.more, nil, '', false
      if waking.text then state, why = asked_for(waking.text) end
      if why == '' then -- a running key that nothing asked for has none
        why = first_why(waking.first, now)
      else
        if not last or lane_of(key, last) > lane_of(key, waking.first) then last = waking.first end
        more = more + 1
      end
      if more > 0 then why, more_urgent = with_trigger(key, why, last, now, more) end
      waking.why = why
      if state then
        if more_urgent and state == 'queued ' then move_up(queue, key, why) end
        sets[#sets + 1], sets[#sets + 2] = key, state .. why
      else
        append(queue, waking.key, waking.why)
        added = added + 1
      end
    end
    for at = 1, #sets, 4000 do redis.call('HSET', states, unpack(sets, at, math.min(at + 3999, #sets))) end
  end
  return added
end
