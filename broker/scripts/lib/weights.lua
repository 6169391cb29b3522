-- include: scopes
-- Weights that people set. A namespace, or a controller, has 1 where they set none.
local LEAST_WEIGHT, MOST_WEIGHT = 0.1, 100
local weights -- of namespaces

local function weight_in(text)
  local weight = number_in(text, 'weight')
  return weight and math.min(math.max(weight, LEAST_WEIGHT), MOST_WEIGHT)
end

-- They are read once a script, when the first key goes into a backlog.
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

-- Where a controller has a weight, a claim asks the queue first that has had the least: keys taken by its weight. In "strides" stands how much
-- that is, and under "" where the queue stood that was served last: nobody saves up what he had no keys for.
local function stride_of(queue)
  local found = redis.call('HMGET', base .. 'strides', queue, '')
  return math.max(tonumber(found[1] or 0) or 0, tonumber(found[2] or 0) or 0)
end

-- The arguments from there on, each of which begins with a queue, in the order in which they are asked; nil where no controller has a weight.
local function order_by_weight(scopes, from)
  local weighed, order, strides = false, {}, {}
  for scope in pairs(scopes) do weighed = weighed or string.sub(scope, 1, 13) == 'weight queue ' end
  if not weighed then return nil end
  for i = from, #ARGV do order[#order + 1], strides[i] = i, stride_of(string.match(ARGV[i], '^%S*')) end
  table.sort(order, function(a, b) return strides[a] < strides[b] or strides[a] == strides[b] and a < b end)
  return order
end

local function advance_stride(scopes, queue, taken)
  local stride = stride_of(queue)
  local after = stride + taken / (weight_in(scopes['weight queue ' .. queue]) or 1)
  redis.call('HSET', base .. 'strides', '', string.format('%.17g', stride), queue, string.format('%.17g', after))
end
