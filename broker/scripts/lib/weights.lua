-- include: scopes
-- Weights that people set. A namespace has 1 where they set none.
local weights = {LEAST = 0.1, MOST = 100}

function weights.weight_in(text)
  local weight = number_in(text, 'weight')
  return weight and math.min(math.max(weight, weights.LEAST), weights.MOST)
end

-- They are read once a script, when the first key goes into a backlog.
function weights.weight_of(namespace)
  if not weights.of_namespaces then
    weights.of_namespaces = {}
    for scope, text in pairs(paused_scopes() or {}) do
      local name = string.match(scope, '^weight namespace (.*)$')
      if name then weights.of_namespaces[name] = weights.weight_in(text) end
    end
  end
  return weights.of_namespaces[namespace] or 1
end
