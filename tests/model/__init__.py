"""An explicit-state model of turns beside unanswered writes: one owner, a few names, every order of events.

It knows nothing of the product. `rule.py` is the rule as a turn applies it, `world.py` the API, the cache and what goes
wrong, `explore.py` the search, `cases.py` what is searched and the changed rules that have to be found wanting,
`clock.py` a second small model: when an entry of the record has been silent for long enough.

`rollout/` is a second world, of a Deployment and its ReplicaSets.

    python -m tests.model [wide|small|mutants|rollout|rollout-wide|rollout-mutants]
"""
