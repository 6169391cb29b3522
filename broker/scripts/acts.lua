-- acts: hand over the lines of the audit stream that no ingestor has taken yet, to be told as events. Each is handed over once.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED audit audit_told
-- ARGV[1] at most so many
-- Returns: {"OK", line, ...} | {"STALE"}
-- Invariant: a line is handed to one caller at most, the oldest first.
local told, last, reply = base .. 'audit_told', nil, {'OK'}
local after = redis.pcall('GET', told)
if type(after) == 'table' then -- somebody else put another type there: what is for people alone ends no epoch
  redis.call('DEL', told)
  after = nil
end
local entries = redis.call('XRANGE', base .. 'audit', '(' .. (after or '0-0'), '+', 'COUNT', whole(ARGV[1]))
for i, entry in ipairs(entries) do reply[i + 1], last = entry[2][2], entry[1] end
if last then redis.call('SET', told, last) end
return reply
