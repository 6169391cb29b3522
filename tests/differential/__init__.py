"""The same seeded scenarios played beside upstream's kube-controller-manager and beside a fleet, and compared.

`python -m tests.differential` is the command. `generate` makes the steps of a scenario from a
seed, `hands` applies one to a side, `quiet` says when a side has come to rest, `snapshot` writes down what is then
there without names and times, `compare` finds the differences of two such, `explain` knows those that are meant
(docs/differences.md), `play` does all of it for one scenario, `campaign` for many at once.
"""
