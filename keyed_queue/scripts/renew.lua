-- renew: a consumer renews the leases of the keys it has, once a second.
-- KEYS[1] base
-- DERIVED consumers tick leases locks
-- ARGV[1] holder  ARGV[2] lease ms  ARGV[3..] pairs: key  token
-- Returns: {"OK", token, ...} the tokens whose lock is another's now, or nobody's
-- Invariant: a lease is only ever renewed for the holder of the current token.
-- include: queue locks
local holder, lease_ms, now, reply = ARGV[1], whole(ARGV[2]), now_ms(), {'OK'}
check()
seen(holder, now)
steady(now)
for i = 3, #ARGV, 2 do
  local lock = redis.call('HGET', base .. 'locks', ARGV[i])
  if token_of(lock) == ARGV[i + 1] then
    lives(ARGV[i], lock)
    redis.call('ZADD', base .. 'leases', number(now + lease_ms), ARGV[i])
  else
    reply[#reply + 1] = ARGV[i + 1]
  end
end
return reply
