-- Stamped by the loader: one text an epoch, so that a script of an earlier life can neither be found nor pass its first step.
local EPOCH = '@EPOCH@' -- protocol @PROTOCOL@
if redis.call('GET', KEYS[1]) ~= EPOCH then return {'STALE'} end
local base = KEYS[2]
local function now_ms() @CLOCK@ end
local function number(text) return string.format('%.0f', text) end -- tostring(1e15) would say 1e+15
