"""What is searched: the rule in small worlds, and changed rules that some world has to find wanting."""

from functools import partial
from typing import NamedTuple

from tests.model.explore import Result, lively, safe
from tests.model.rollout.rule import Rule, Strategy
from tests.model.rollout.state import READY, Faults, ReplicaSet, Set, State
from tests.model.rollout.world import World, is_done, start, steps


class Case(NamedTuple):
    """One search: of safety, or if `rests` of whether the rollout can be ended from every state.

    `templates`: how many there are, each with a ReplicaSet of its own. `size`: of the first one, which has all pods.
    """

    name: str
    rule: Rule
    templates: int
    size: int
    faults: Faults
    rests: bool = False
    world: World = World()
    begins: State | None = None

    def search(self, limit: int = 10**6) -> Result:
        starts = [self.begins or start(self.templates, self.size, self.rule, self.faults)]
        possible = partial(steps, rule=self.rule, world=self.world)
        if self.rests:
            return lively(starts, possible, self._rested, limit=limit)
        return safe(starts, possible, limit)

    def _rested(self, state: State) -> bool:
        """A rollout to a template whose pods cannot be created has no end."""
        return is_done(state) or state.template in self.world.stubborn


SURGING, UNAVAILABLE, RECREATE = Strategy(), Strategy(surge=0, unavailable=1), Strategy(0, 0, recreate=True)
BACK = Faults(kills=2, templates=2)
ONCE = Faults(kills=1, templates=2)

SAFE = (
    Case("surging, changed twice", Rule(), 2, 1, BACK),
    Case("surging, changed three times", Rule(), 2, 1, BACK._replace(templates=3)),
    Case("surging, two pods", Rule(), 2, 2, BACK),
    Case("surging, scaled", Rule(), 2, 2, Faults(kills=1, templates=1, scalings=1)),
    Case("surging, a refusal", Rule(), 2, 1, BACK._replace(refusals=1)),
    Case("surging, a loss", Rule(), 2, 2, BACK._replace(losses=1)),
    Case("surging, a pod that is created twice", Rule(), 2, 2, ONCE._replace(twins=1)),
    Case("surging, a ReplicaSet is deleted", Rule(), 2, 1, BACK._replace(prunes=1)),
    Case("unavailable", Rule(UNAVAILABLE), 2, 2, BACK),
    Case("unavailable, a pod that is created twice", Rule(UNAVAILABLE), 2, 2, ONCE._replace(twins=1)),
    Case("unavailable, a loss", Rule(UNAVAILABLE), 2, 2, ONCE._replace(losses=1)),
    Case("Recreate", Rule(RECREATE), 2, 1, BACK),
    Case("Recreate, three templates", Rule(RECREATE), 3, 1, ONCE),
    Case("Recreate, a loss", Rule(RECREATE), 2, 1, ONCE._replace(losses=1)),
    Case("Recreate, a pod that is created twice", Rule(RECREATE), 2, 1, ONCE._replace(twins=1)),
)

FAILING = World(stubborn=frozenset({1}))
"""The pods of the second template: creates of them never have an answer."""
SHORT = World(wanted=(2, 3), stubborn=frozenset({0}))

LIVELY = (
    Case("back from a template whose pods never come", Rule(), 2, 1, ONCE, True, FAILING),
    Case("so too where pods may be unavailable", Rule(UNAVAILABLE), 2, 2, ONCE, True, FAILING),
    Case("away from a template whose pods come no more", Rule(), 2, 2, Faults(templates=1, scalings=1), True, SHORT),
    Case("surging", Rule(), 2, 1, BACK, True),
    Case("surging, three templates", Rule(), 3, 1, ONCE, True),
    Case("surging, scaled", Rule(), 2, 2, Faults(kills=1, templates=1, scalings=1), True),
    Case("surging, a refusal", Rule(), 2, 1, BACK._replace(refusals=1), True),
    Case("surging, a loss", Rule(), 2, 2, ONCE._replace(losses=1), True),
    Case("surging, a ReplicaSet is deleted", Rule(), 2, 1, ONCE._replace(prunes=1), True),
    Case("unavailable", Rule(UNAVAILABLE), 2, 2, BACK, True),
    Case("Recreate", Rule(RECREATE), 2, 1, BACK, True),
)

RISKY = Strategy(surge=1, unavailable=1)


def _forgotten() -> State:
    """The first ReplicaSet went 2 -> 1 -> 2 -> 1, its status has seen the first step only, and then Redis was lost."""
    first = ReplicaSet(1, True, 1, True, False, 1, 1)
    second = ReplicaSet(1, True, 1, True, True, 1, 1)
    sets = (Set(first, first, active=(READY, READY)), Set(second, second, active=(READY,)))
    state = start(2, 2, Rule(RISKY), Faults())
    return state._replace(sets=sets, template=1, seen_template=1)


TWICE = Faults(kills=1, templates=2, twins=1)

MUTANTS = (
    Case("smallest sizes do not count", Rule(counts_low=False), 2, 1, ONCE),
    Case("largest sizes do not count", Rule(counts_high=False), 2, 2, BACK),
    Case("pods of the status do not count", Rule(counts_pods=False), 2, 2, BACK),
    Case("an open write is forgotten once the cache shows no change", Rule(keeps_open=False), 2, 1, ONCE),
    Case("an entry goes before the cache has seen its ReplicaSet", Rule(absent="dropped"), 3, 1, ONCE),
    Case("so it does under Recreate", Rule(RECREATE, absent="dropped"), 2, 1, ONCE),
    Case("an open write is over without a look", Rule(over="D"), 2, 1, ONCE),
    Case("an open write is over before D", Rule(over="GET"), 2, 1, ONCE),
    Case("own writes need not be read", Rule(needs=False), 2, 1, ONCE),
    Case("what a conflict showed need not be read", Rule(conflict_needs=False), 2, 2, BACK),
    Case("a refused repeat ends the write", Rule(UNAVAILABLE, refusal_keeps=False), 2, 2, BACK._replace(refusals=1)),
    Case("no wait after a loss", Rule(drain=False), 2, 1, BACK._replace(losses=1)),
    Case("after a loss unobserved sizes are trusted", Rule(unknown=False), 2, 1, BACK._replace(losses=1)),
    Case("a new write makes it known", Rule(RISKY, stays_unknown=False), 2, 2, Faults(), begins=_forgotten()),
    Case("observed whatever is under way", Rule(observes="always"), 2, 1, ONCE),
    Case("observed although names are reserved", Rule(UNAVAILABLE, observes="pending"), 2, 2, TWICE),
    Case("deletes of pods without a resourceVersion", Rule(delete_versions=False), 2, 1,
         Faults(templates=1, scalings=2)),
    Case("created with its size", Rule(creates_empty=False), 3, 1, ONCE),
    Case("size writes without a resourceVersion", Rule(versions=False), 2, 2, BACK),
    Case("Recreate: largest sizes do not count", Rule(RECREATE, counts_high=False), 2, 1, BACK),
    Case("Recreate: old ReplicaSets may get pods", Rule(RECREATE, waits_high=False), 2, 1, BACK),
    Case("Recreate: pods that are left", Rule(RECREATE, looks=False), 2, 1, ONCE),
    Case("rest: observed only once nothing is open, and smallest sizes are summed",
         Rule(observes="nothing open", sums_low=True), 2, 1, ONCE, True, FAILING),
)  # fmt: skip

BUYS_NOTHING = (
    Case("entries of answered writes go: then it is unknown until observed", Rule(keeps_answered=False), 2, 2, BACK),
    Case("a new entry takes the place of the former one", Rule(merges=False), 2, 2, BACK._replace(templates=3)),
    Case("an unchanged ReplicaSet waits for its status too", Rule(trusts_unchanged=False), 3, 2, ONCE),
    Case("smallest sizes are summed for the pods that may go", Rule(sums_low=True), 3, 2, ONCE),
    Case("observed only once nothing is open", Rule(observes="nothing open"), 2, 2, ONCE._replace(twins=1)),
)
"""Changed rules that break no limit: what they change is only how soon something is done."""

WIDE = (
    Case("surging, three templates", Rule(), 3, 1, BACK),
    Case("surging, three templates, two pods", Rule(), 3, 2, ONCE),
    Case("surging, scaled twice", Rule(), 2, 1, Faults(kills=2, templates=1, scalings=2)),
    Case("surging, scaled, changed twice", Rule(), 2, 1, BACK._replace(scalings=1)),
    Case("surging, three templates, a loss", Rule(), 3, 1, ONCE._replace(losses=1)),
    Case("surging, three templates, three pods", Rule(), 3, 3, ONCE),
    Case("surging, scaled, pods created twice", Rule(), 2, 2, Faults(kills=1, templates=1, scalings=1, twins=1)),
    Case("both limits", Rule(RISKY), 3, 2, ONCE),
    Case("both limits, a loss", Rule(RISKY), 2, 2, ONCE._replace(losses=1)),
    Case("Recreate, two pods, a loss", Rule(RECREATE), 2, 2, ONCE._replace(losses=1)),
    Case("rest: surging, scaled twice", Rule(), 2, 1, Faults(kills=1, templates=1, scalings=2), True),
)
