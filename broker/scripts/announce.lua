-- announce: enter the writes about to be sent. No write is sent that was not announced under the current nonce.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED queue:locks leases generation cache:resource:generation queue:expect:key queue:unsettled
-- DERIVED summary:resource:generation:entry
-- ARGV[1] queue  ARGV[2] key  ARGV[3] nonce  ARGV[4] lease ms  ARGV[5] owner uid
-- ARGV[6..] none (the lease starts anew, nothing else), or triples:
--   verb ("create" | "delete" | "scale" | any other)  "resource/name"  detail ("", "uid=.. rv=..", "uid=.. rv=.. low=.. high=..", or "node=..")
--   or "backoff"  node, or "rest"  "resource/name", and what to store: announced with the delete that causes it, and never pending
-- Returns: {"OK", lease ms} | {"BORNE", "resource/name", cached value, ...}: a cached object has the name of a new create; nothing is entered
--          | {"LOST"} (the nonce is not the current one) | {"STALE"}
-- A write announced again keeps the time since which it is pending, and its tries are counted. It may land until a time that begins anew.
-- Invariant: an entry ends by an answer, by a look at the API, or with its owner; never by time alone while its key is worked on.
-- include: cache queue locks summary
local queue, key, nonce, lease_ms, uid = ARGV[1], ARGV[2], ARGV[3], whole(ARGV[4]), ARGV[5]
local lock = redis.call('HGET', base .. queue .. ':locks', key)
if not lock or nonce_of(lock) ~= nonce then return {'LOST'} end
check(queue)
local now, expected = now_ms(), base .. queue .. ':expect:' .. key
redis.call('HLEN', expected)
local namespace = string.match(key, '^(.*/)') or ''
local fields, taken, pending = {'owner', uid}, {'BORNE'}, false
local at_ms = number(now)
for i = 6, #ARGV, 3 do
  local verb, target, detail = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local field = verb .. ' ' .. target
  local resource, name = string.match(target, '^([^/]+)/(.+)$')
  local known = redis.call('HGET', expected, field)
  if verb == 'create' and not known then
    local gen = generation(resource)
    local value = redis.call('HGET', objects_key(resource, gen), namespace .. name)
    if value then taken[#taken + 1], taken[#taken + 2] = target, whole_of(resource, gen)(value) end
  end
  fields[#fields + 1] = field
  if note(field) then
    if target == '' or not string.find(detail, '^[^\n]+$') then error('announce: bad ' .. verb .. ' of ' .. key) end
    fields[#fields + 1] = detail
  else
    pending = true
    local since, tries = at_ms, 1
    if known and string.sub(known, 1, 8) == 'pending ' and (verb == 'create' or string.find(known, detail, 1, true)) then
      since = string.match(known, ' since_ms=(%d+)') or since
      tries = (tonumber(string.match(known, ' tries=(%d+)') or 1)) + 1
    end
    local text = 'pending since_ms=' .. since .. ' sent_ms=' .. at_ms .. ' tries=' .. number(tries)
    fields[#fields + 1] = text .. (detail ~= '' and ' ' .. detail or '')
  end
end
if #taken > 1 then return taken end
redis.call('ZADD', base .. 'leases', 'XX', number(now + lease_ms), queue .. ':' .. key)
if #ARGV == 5 then return {'OK', lease_ms} end
for at = 1, #fields, 4000 do redis.call('HSET', expected, unpack(fields, at, math.min(at + 3999, #fields))) end
if pending then redis.call('HSETNX', base .. queue .. ':unsettled', key, number(now)) end
keep_expectations(queue, key, 0)
return {'OK', lease_ms}
