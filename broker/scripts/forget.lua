-- forget: clear the back-off history of a key. The key does not leave the queue, and no turn ends.
-- KEYS[1] epoch  KEYS[2] base
-- DERIVED queue:failures
-- ARGV[1] queue  ARGV[2] key
-- Returns: {"OK"} | {"STALE"}
-- Invariant: nothing but the count of failures changes.
redis.call('HDEL', base .. ARGV[1] .. ':failures', ARGV[2])
return {'OK'}
