-- budget: lend the workers of a supervisor their shares of the API budget. Each has its shares until its lease ends, or it reports again.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED budget shares holders
-- ARGV[1] lease ms  ARGV[2] rate at most  ARGV[3] rate at least  ARGV[4] requests under way at most; 0: no limit
-- ARGV[5..] one a worker: "holder 429s wait_ms slow under_way flights [lane=wanted ...]"; slow: 1, 0, or - where it cannot say
-- Returns: {"OK", rate of the fleet, ms without a request, {holder, spare, flights, {lane, rate, ...}}, ...} | {"STALE"}
-- All rates are whole thousandths of a request a second.
-- Invariant: the rates that are lent are never more than the fleet's rate together, but for the moment in which that falls.
local lease_ms, most, least, flights_max, now = whole(ARGV[1]), whole(ARGV[2]), whole(ARGV[3]), whole(ARGV[4]), now_ms()
local WAIT_MAX_MS = 60000
local IDLE_PERCENT, EVENTS_PERCENT = 4, 10
local RAISE_PERCENT, RAISE_EVERY_MS = 5, 1000
local CUT_TO, CUT_EVERY_MS = {['429'] = 70, slow = 85}, {['429'] = 1000, slow = 2000}

local function parsed(text, pattern)
  local words, lanes = {string.match(text, pattern)}, {}
  if #words == 0 then return nil end
  for lane, numbers in string.gmatch(words[#words], ' ([^= ]+)=(%d[%d:]*)') do lanes[lane] = numbers end
  return words, lanes
end

local reports, mine = {}, {}
local registered = redis.call('HGETALL', base .. 'holders')
local is_registered = {}
for i = 1, #registered, 2 do is_registered[registered[i]] = true end
for i = 5, #ARGV do
  local words, lanes = parsed(ARGV[i], '^(%S+) (%d+) (%d+) ([-01]) (%d+) (%d+)(.*)$')
  if not words then error('budget: bad report ' .. ARGV[i]) end
  if is_registered[words[1]] then
    for lane, want in pairs(lanes) do lanes[lane] = {whole(want), 0} end
    mine[#mine + 1] = words[1]
    reports[words[1]] = {refused = whole(words[2]), wait_ms = whole(words[3])}
    reports[words[1]].loan = {
      until_ms = now + lease_ms, slow = words[4], under_way = whole(words[5]), wanted = whole(words[6]), flights = 0, spare = 0, lanes = lanes,
    }
  end
end

-- Whose lease has ended, or who is struck off, has no share any more. No lease is longer than a new one: the clock may have gone back.
local loans, holders, ended, shortened = {}, {}, {}, {}
local stored = redis.call('HGETALL', base .. 'shares')
for i = 1, #stored, 2 do
  local holder = stored[i]
  local words, lanes = parsed(stored[i + 1], '^(%d+) ([-01]) (%d+) (%d+) (%d+) (%d+)(.*)$')
  local until_ms = words and math.min(tonumber(words[1]), now + lease_ms) or 0
  for lane, numbers in pairs(lanes or {}) do
    local want, lent = string.match(numbers, '^(%d+):(%d+)$')
    lanes[lane] = {tonumber(want) or 0, tonumber(lent) or 0}
  end
  if until_ms <= now or not is_registered[holder] then ended[#ended + 1] = holder
  elseif not reports[holder] then
    holders[#holders + 1] = holder
    if until_ms < tonumber(words[1]) then shortened[holder] = number(until_ms) .. string.match(stored[i + 1], '^%d+(.*)$') end
    loans[holder] = {
      slow = words[2], under_way = tonumber(words[3]), wanted = tonumber(words[4]), flights = tonumber(words[5]),
      spare = tonumber(words[6]), lanes = lanes,
    }
  end
end
for _, holder in ipairs(mine) do
  if not loans[holder] then holders[#holders + 1] = holder end
  loans[holder] = reports[holder].loan
end

-- Max-min: nobody gets more than it wants, and whoever gets less gets as much as anybody.
local function fill(room, wants)
  local order, shares = {}, {}
  for name, want in pairs(wants) do order[#order + 1] = {want, name} end
  table.sort(order, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
  for i, each in ipairs(order) do
    local share = math.min(each[1], math.floor(room / (#order - i + 1)))
    shares[each[2]], room = share, room - share
  end
  return shares
end

local function lent_to(loan)
  local sum = loan.spare
  for _, lane in pairs(loan.lanes) do sum = sum + lane[2] end
  return sum
end

-- Additive increase, multiplicative decrease. A clock that went back ends every pause.
local known = redis.call('HMGET', base .. 'budget', 'rate', 'raised_ms', 'cut_ms', 'wait_until_ms')
local rate, raised_ms, cut_ms, wait_until_ms = tonumber(known[1]), tonumber(known[2]) or 0, tonumber(known[3]) or 0, tonumber(known[4]) or 0
local first, why = not rate, ''
rate = first and most or math.max(least, math.min(rate, most))
local wait_ms, slow, judged = 0, 0, 0
for _, report in pairs(reports) do
  if report.refused > 0 then why = '429' end
  wait_ms = math.max(wait_ms, math.min(report.wait_ms, WAIT_MAX_MS))
end
for _, loan in pairs(loans) do
  if loan.slow ~= '-' then judged = judged + 1 end
  if loan.slow == '1' then slow = slow + 1 end
end
if why == '' and 2 * slow > judged then why = 'slow' end
wait_until_ms = math.max(math.min(wait_until_ms, now + WAIT_MAX_MS), wait_ms > 0 and now + wait_ms or 0)
local since_cut_ms = now >= cut_ms and now - cut_ms or WAIT_MAX_MS
local since_raise_ms = now >= raised_ms and now - raised_ms or RAISE_EVERY_MS
local cut = why ~= '' and since_cut_ms >= CUT_EVERY_MS[why]
if cut then
  rate = math.max(least, math.floor(rate * CUT_TO[why] / 100))
  cut_ms, raised_ms = now, now
elseif first then
  raised_ms = now
elseif why == '' and since_raise_ms >= RAISE_EVERY_MS and now >= wait_until_ms then
  local steps = math.min(100 / RAISE_PERCENT, math.floor(since_raise_ms / RAISE_EVERY_MS))
  rate = math.min(most, rate + steps * math.floor(most * RAISE_PERCENT / 100))
  raised_ms = now
end

-- What each worker should have: among lanes first, then among the workers of a lane. What is left is for all alike.
local by_lane, wants, targets, given = {}, {}, {}, 0
for holder, loan in pairs(loans) do
  targets[holder] = {}
  for lane, numbers in pairs(loan.lanes) do
    by_lane[lane] = by_lane[lane] or {}
    by_lane[lane][holder], wants[lane] = numbers[1], (wants[lane] or 0) + numbers[1]
  end
end
if wants.events then wants.events = math.min(wants.events, math.floor(rate * EVENTS_PERCENT / 100)) end
for lane, share in pairs(fill(rate - math.floor(rate * IDLE_PERCENT / 100), wants)) do
  for holder, own in pairs(fill(share, by_lane[lane])) do
    targets[holder][lane], given = own, given + own
  end
end
local spare = #holders > 0 and math.floor((rate - given) / #holders) or 0

-- What others have been lent, they may still use. Only the rest can be lent.
local free, asked = rate, 0
for holder, loan in pairs(loans) do
  if not reports[holder] then free = free - lent_to(loan) end
end
free = math.max(0, free)
for _, holder in ipairs(mine) do
  asked = asked + spare
  for _, own in pairs(targets[holder]) do asked = asked + own end
end
local function scaled(amount) return asked <= free and amount or math.floor(amount * free / asked) end
for _, holder in ipairs(mine) do
  loans[holder].spare = scaled(spare)
  for lane, own in pairs(targets[holder]) do loans[holder].lanes[lane][2] = scaled(own) end
end

-- Requests under way: each worker that reports gets one at least, so that none stands still.
if flights_max > 0 and #mine > 0 then
  local wanted, extra, taken, own = {}, flights_max, 0, {}
  for holder, loan in pairs(loans) do
    wanted[holder] = math.max(1, loan.wanted)
    if not reports[holder] then taken = taken + math.max(loan.flights, loan.under_way) end
  end
  local fair = fill(flights_max, wanted)
  for _, flights in pairs(fair) do extra = extra - flights end
  for _, holder in ipairs(mine) do own[holder] = fair[holder] + math.floor(math.max(0, extra) / #holders) end
  for holder, flights in pairs(fill(math.max(0, flights_max - taken), own)) do loans[holder].flights = math.max(1, flights) end
end

if #ended > 0 then redis.call('HDEL', base .. 'shares', unpack(ended)) end -- first: a removal may run when memory is full
redis.call(
  'HSET', base .. 'budget', 'rate', number(rate), 'raised_ms', number(raised_ms), 'cut_ms', number(cut_ms),
  'wait_until_ms', number(wait_until_ms), 'most', number(most), 'flights', number(flights_max)
)
for holder, text in pairs(shortened) do redis.call('HSET', base .. 'shares', holder, text) end
if cut then redis.call('HSET', base .. 'budget', 'why', why) end
local reply = {'OK', rate, math.max(0, wait_until_ms - now)}
for i, holder in ipairs(mine) do
  local loan, lanes, flat = loans[holder], {}, {}
  for lane, numbers in pairs(loan.lanes) do
    lanes[#lanes + 1] = lane .. '=' .. number(numbers[1]) .. ':' .. number(numbers[2])
    flat[#flat + 1], flat[#flat + 2] = lane, numbers[2]
  end
  table.sort(lanes)
  table.insert(lanes, 1, table.concat({
    number(loan.until_ms), loan.slow, number(loan.under_way), number(loan.wanted), number(loan.flights), number(loan.spare),
  }, ' '))
  redis.call('HSET', base .. 'shares', holder, table.concat(lanes, ' '))
  reply[i + 3] = {holder, loan.spare, loan.flights, flat}
end
return reply
