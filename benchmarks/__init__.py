"""What it costs and how fast it is: `python -m benchmarks.queue | converge | failover`, or `make bench NAME=...`.

Each prints its progress, a table, and as its last line one JSON object; docs/benchmarks.md explains the keys.
"""
