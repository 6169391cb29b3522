-- include: scopes
-- Weights that people set. A namespace has 1 where they set none.

local WEIGHT_MIN = 0.1
local WEIGHT_MAX = 100
local function weight_in(text)
  local weight = number_in(text, 'weight')
  return weight and math.min(math.max(weight, WEIGHT_MIN), WEIGHT_MAX)
end

-- Read once a script, when the first key goes into a backlog.
local weights
local function weight_of(namespace)
  if not weights then
    weights = {}
    for scope, text in pairs(paused_scopes() or {}) do
      local name = string.match(scope, '^weight namespace (.*)$')
      if name then weights[name] = weight_in(text) end
    end
  end
  return weights[namespace] or 1
end
