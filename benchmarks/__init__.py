"""What it costs and how fast it is: `python -m benchmarks.queue`, or converge, failover, daemonset, nodes; `make bench
NAME=...` does the same.

Each prints its progress, a table, and as its last line one JSON object; docs/benchmarks explains the keys.
"""

from oarlock.controllers.builtin import register_builtin

register_builtin()  # before a program of this package reads the kinds
