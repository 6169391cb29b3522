"""A second world of the model: the size writes of one Deployment over its ReplicaSets, whose own turns are agents.

It knows nothing of the product. `rule.py` is the rule as a turn applies it, `world.py` what may happen, `cases.py` what
is searched and the changed rules that have to be found wanting.
"""
