-- include: queue
-- Workers that wait may go, though this script has queued nothing for them.

-- Where keys are queued: the worker that was to take them may not come.
local function wake_for_queued(queues)
  for _, queue in ipairs(queues) do
    local queued = redis.call('XLEN', base .. queue .. ':stream') + redis.call('ZCARD', base .. queue .. ':backlog')
    if queued > 0 then came[queue] = math.max(came[queue] or 0, 1) end
  end
end

-- All: something other than a key concerns them. The token of each lies where it looks first.
local function wake_all(now)
  for _, waiter in ipairs(redis.call('ZRANGEBYSCORE', base .. 'waiters', number(now), '+inf')) do
    local queue = string.match(redis.call('HGET', base .. 'holders', waiter) or '', ' queues=,([^,]+)')
    if queue then came[queue] = (came[queue] or 0) + 1 end
  end
  wake(now)
end
