-- acts: hand over the lines of the audit stream that no ingestor has taken yet, to be told as events. Each is handed over once.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED audit audit_told
-- ARGV[1] at most so many
-- Returns: {"OK", line, ...} | {"STALE"}
-- Invariant: a line is handed to one caller at most, the oldest first.
local audit, most, reply, last = base .. 'audit', whole(ARGV[1]), {'OK'}, nil
local told = redis.pcall('GET', base .. 'audit_told')
local entries = type(told) == 'string' and redis.pcall('XRANGE', audit, '(' .. told, '+', 'COUNT', most)
-- Nothing was told yet, or what somebody else put there is no id: from the oldest line on.
if not entries or entries.err then entries = redis.call('XRANGE', audit, '-', '+', 'COUNT', most) end
for i, entry in ipairs(entries) do reply[i + 1], last = entry[2][2], entry[1] end
if last then redis.call('SET', base .. 'audit_told', last) end
return reply
