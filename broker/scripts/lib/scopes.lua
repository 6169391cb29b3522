-- What people have set stands in "pauses", scope -> text. Under "all", "queue QUEUE", "namespace NAME" and "key QUEUE:KEY" stand pauses.
-- "rate QUEUE" bounds the turns that begin, "weight namespace NAME" says how many keys of a namespace a round of a backlog has.

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
