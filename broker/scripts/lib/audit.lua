-- What people did, and what ended by itself of it: a line for people. Ingestors tell these lines as events (acts.lua).

local AUDIT_MAX = 1000
local function audit(act, text) redis.call('XADD', base .. 'audit', 'MAXLEN', AUDIT_MAX, '*', 'act', act .. ': ' .. text) end
