-- What people have set stands in "pauses", scope -> text. Under "all", "queue QUEUE", "namespace NAME" and "key QUEUE:KEY" stand pauses.
-- "rate QUEUE" and "rate namespace NAME" bound the turns that begin (claim, limits), "weight queue QUEUE" and "weight namespace NAME" say how
-- large a share is (weights).

-- The scopes and their texts, or nil where there are none: then a script has no more to do with them.
local function paused_scopes()
  if redis.call('EXISTS', base .. 'pauses') == 0 then return nil end
  local flat, scopes = redis.call('HGETALL', base .. 'pauses'), {}
  for i = 1, #flat, 2 do scopes[flat[i]] = flat[i + 1] end
  return scopes
end

-- The number in a text, such as "rate=5"; nil where there is none above 0.
local function number_in(text, word)
  local number = tonumber(string.match(' ' .. (text or '') .. ' ', ' ' .. word .. '=(%d+%.?%d*) ') or '')
  return number and number > 0 and math.min(number, 1000000) or nil
end
