-- report: an ingestor says what it hears of the API, for people; nothing is decided by it.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED ingestors
-- ARGV[1] ingestor  ARGV[2] what it hears, in words (broker/looks/hearing.py); "": it leaves
-- Returns: {"OK"} | {"STALE"}
-- Invariant: of an ingestor that has said nothing for a minute the others leave nothing.
local SILENT_MS = 60000
local name, text, now = ARGV[1], ARGV[2], now_ms()
if string.find(name .. text, '\n', 1, true) then error('report: more than a line') end
local ingestors = base .. 'ingestors'
local told = redis.pcall('HGETALL', ingestors)
if told.err then -- somebody else put another type there: what is for people alone ends no epoch
  redis.call('DEL', ingestors)
  told = {}
end
for i = 1, #told, 2 do
  local at_ms = tonumber(string.match(told[i + 1], '^at_ms=(%d+)') or 0)
  if math.abs(now - at_ms) > SILENT_MS then redis.call('HDEL', ingestors, told[i]) end
end
if text == '' then redis.call('HDEL', ingestors, name)
else redis.call('HSET', ingestors, name, 'at_ms=' .. number(now) .. ' ' .. text) end
return {'OK'}
