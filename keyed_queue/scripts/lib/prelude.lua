-- All keys of a queue share the prefix KEYS[1] and its hash tag. Scripts derive their names from it.
local base = KEYS[1]
local function now_ms() @CLOCK@ end
local function number(text) return string.format('%.0f', text) end -- tostring(1e15) would say 1e+15

-- A whole number given as an argument. Anything else ends the script here, before its first write.
local function whole(text)
  local value = tonumber(text)
  if not value or value % 1 ~= 0 or math.abs(value) > 2 ^ 53 then error('not a whole number: ' .. tostring(text)) end
  return value
end
