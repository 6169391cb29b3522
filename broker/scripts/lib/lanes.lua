-- What queued a key, "since_ms count first[, last]", and the lane that follows from it. "last" is the last trigger of those after the first
-- that are in the most urgent lane, so the text always names one of the key's own lane.

-- 0: people changed or asked for the object itself, or its turn was lost. 1: the status of another object. 2: what else follows from turns, as
-- changes of children. 3: it is looked at anew: all are, a child that was asked for has come, or its own status was written.
local TRIGGER_BYTES_MAX = 160
-- Whether the trigger that ends there ends with "/key": the object itself.
local function is_own(key, text, to) return string.byte(text, to - #key) == 47 and string.sub(text, to - #key + 1, to) == key end

-- The lane of the trigger from there to there in a text. It looks at single bytes first: this is asked for every event of a queued key.
local function lane_at(key, text, from, to)
  local byte, find = string.byte(text, from), string.find
  if byte == 115 and find(text, '^set ', from) or byte == 100 and find(text, '^del ', from) then
    return is_own(key, text, to) and 0 or 2
  elseif byte == 115 then return find(text, '^status ', from) and 1 or 2
  elseif byte == 111 then return find(text, '^observed ', from) and 3 or 2
  elseif byte == 97 then
    if find(text, '^added ', from) then return is_own(key, text, to) and 0 or to - from + 1 < TRIGGER_BYTES_MAX and 3 or 2 end -- cut, it may be own
    return find(text, '^asked', from) and 0 or find(text, '^anew', from) and 3 or 2
  elseif byte == 108 then return find(text, '^list ', from) and 3 or find(text, '^lost ', from) and 0 or 2
  elseif byte == 114 then return find(text, '^resumed', from) and 0 or 2 end
  return 2
end

local function lane_of(key, trigger) return lane_at(key, trigger, 1, #trigger) end

local function lane_of_why(key, why)
  local from, comma = string.match(why, '^%d+ %d+ ()[^,]+()')
  if not from then return 2 end
  local lane = lane_at(key, why, from, comma - 1)
  return comma > #why and lane or math.min(lane, lane_at(key, why, comma + 2, #why))
end

-- The first trigger. The same one often queues many keys in a row.
local last_trigger, last_why
local function first_why(trigger, now)
  if trigger ~= last_trigger then
    last_trigger, last_why = trigger, number(now) .. ' 1 ' .. string.sub(trigger, 1, TRIGGER_BYTES_MAX)
  end
  return last_why
end

-- One more trigger, or so many of which this is the last of the most urgent. Returns the text, and whether the key is in a more urgent lane.
local function with_trigger(key, why, trigger, now, triggers)
  local since, count, first, comma = string.match(why, '^(%d+) (%d+) ([^,]+)()')
  trigger = string.sub(trigger, 1, TRIGGER_BYTES_MAX)
  local lane = lane_of(key, trigger)
  if not since then return first_why(trigger, now), lane < 2 end
  local was = lane_at(key, why, comma - #first, comma - 1)
  if comma <= #why then
    local of_last = lane_at(key, why, comma + 2, #why)
    if of_last < lane then trigger = string.sub(why, comma + 2) end
    if of_last < was then was = of_last end
  end
  return since .. ' ' .. number(count + (triggers or 1)) .. ' ' .. first .. ', ' .. trigger, lane < was
end
