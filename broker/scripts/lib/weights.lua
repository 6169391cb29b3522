-- include: scopes
-- Weights that people set. A namespace, or a controller, has 1 where they set none.
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

-- Where a controller has a weight, a claim asks the queue first that has had the least: keys taken by its weight. In "strides" stands how much
-- that is, and under "" where the queue stood that was served last: nobody saves up what he had no keys for.
function weights.stride_of(queue)
  local found = redis.call('HMGET', base .. 'strides', queue, '')
  return math.max(tonumber(found[1] or 0) or 0, tonumber(found[2] or 0) or 0)
end

-- The arguments from there on, each of which begins with a queue, in the order in which they are asked; nil where no controller has a weight.
function weights.order_of(scopes, from)
  local weighed, order, strides = false, {}, {}
  for scope in pairs(scopes) do weighed = weighed or string.sub(scope, 1, 13) == 'weight queue ' end
  if not weighed then return nil end
  for i = from, #ARGV do order[#order + 1], strides[i] = i, weights.stride_of(string.match(ARGV[i], '^%S*')) end
  table.sort(order, function(a, b) return strides[a] < strides[b] or strides[a] == strides[b] and a < b end)
  return order
end

function weights.advance(scopes, queue, taken)
  local stride = weights.stride_of(queue)
  local after = stride + taken / (weights.weight_in(scopes['weight queue ' .. queue]) or 1)
  redis.call('HSET', base .. 'strides', '', string.format('%.17g', stride), queue, string.format('%.17g', after))
end
