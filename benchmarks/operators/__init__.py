"""Operators of one's own: oarlock beside kopf on the same API server, and a campaign of kills.

`python -m benchmarks.operators` compares; `python -m benchmarks.operators.kills` kills workers and judges.
"""
