"""How requests travel: connections, HTTP messages, rate limit, watch frames. Each write is sent at most once."""
