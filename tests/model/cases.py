"""What is searched: the rule, which has to hold, and changed rules, which have to be found wanting.

Small cases for every test run; `WIDE` ones, which take minutes, for `python -m tests.model`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from tests.model.explore import Result, lively, safe
from tests.model.rule import NODE, ROLLING, STRICT, SURGING, Kind, Rule
from tests.model.state import ABSENT, ACTIVE, OPEN, Faults, State, active, start
from tests.model.world import World, steps


def full(state: State) -> bool:
    return _is_at_rest(state) and active(state.api) == state.want


def one_short(state: State) -> bool:
    """All but one; none where none is wanted."""
    return _is_at_rest(state) and max(0, state.want - 1) <= active(state.api) <= state.want


def one_over(state: State) -> bool:
    return _is_at_rest(state) and state.want <= active(state.api) <= state.want + 1


def _is_at_rest(state: State) -> bool:
    outstanding = state.acting or state.late or state.events or state.phase != OPEN
    return not outstanding and state.seen_want == state.want


class Case(NamedTuple):
    """One search. `rested`: what counts as rest, where that is asked for; None where safety is."""

    name: str
    rule: Rule
    starts: tuple[State, ...]
    world: World = World()
    rested: Callable[[State], bool] | None = None

    def search(self, limit: int = 10**6) -> Result:
        possible = partial(steps, rule=self.rule, world=self.world)
        if self.rested is None:
            return safe(self.starts, possible, limit)
        return lively(self.starts, possible, self.rested, self._proves, limit)

    def _proves(self, state: State) -> bool:
        """Not where a name has borne as many pods as the search allows."""
        return max(pod.uid for pod in state.api) < self.world.uids


def from_(names: int, pods: Iterable[int], wanted: Iterable[int], **faults: int) -> tuple[State, ...]:
    """Starts with so many active pods, under the lowest names, and so many wanted."""
    counts = tuple(pods)
    return tuple(
        start((ACTIVE,) * count + (ABSENT,) * (names - count), want, Faults(**faults))
        for want in wanted
        for count in counts
    )


UP_TO_2 = World(wanted=(0, 1, 2))
FAILING = World(fails=True)
REFUSED = World(uids=3, wanted=(0, 2), refused_creates=frozenset({0}))
FOUR = REFUSED._replace(wanted=(2, 4))
UNDELETABLE = World(uids=3, wanted=(0, 2), refused_deletes=frozenset({0}), fails=True)
BARE = Kind()
"""A usual owner that passes no name over."""
SURGES = World(wanted=(0, 1, 2), fails=True)
ROLLS = World(wanted=(1, 2), fails=True)

WAVES = World(wanted=(1, 3))

STEADY = from_(2, (0, 1, 2), (1,), kills=2, ends=1, refusals=1)
SCALED = from_(2, (0, 1, 2), (0, 1), kills=1, ends=1, scalings=1)

SAFE = (
    Case("usual owner, constant count", Rule(), STEADY),
    Case("usual owner, scaled", Rule(), SCALED),
    Case("usual owner, pods that change", Rule(), from_(2, (2,), (1, 2), kills=2, touches=1)),
    Case("usual owner, foreign pods", Rule(), from_(2, (0, 1), (1,), kills=1, ends=1, foreign=1), FAILING),
    Case("usual owner, a loss", Rule(), from_(2, (0, 1, 2), (1,), kills=1, ends=1, losses=1)),
    Case("strict owner", Rule(STRICT), STEADY, FAILING),
    Case("strict owner, creates before D after a loss", Rule(STRICT, drain=False),
         from_(2, (0, 1, 2), (1,), kills=1, ends=1, losses=1), FAILING),
    Case("node", Rule(NODE), from_(1, (0, 1), (0, 1), kills=2, ends=1, scalings=1), FAILING),
    Case("node, a foreign pod", Rule(NODE), from_(2, (0, 1), (1,), kills=2, ends=1, foreign=1), FAILING),
    Case("node, creates before D after a loss", Rule(NODE, drain=False),
         from_(2, (0, 1), (1,), kills=2, ends=1, losses=1), FAILING),
    Case("surging node, creates before D after a loss", Rule(SURGING, drain=False),
         from_(3, (0, 1), (1, 2), kills=1, losses=1), SURGES),
    Case("rolling update", Rule(ROLLING), from_(2, (2,), (1,), kills=1, ends=1, scalings=1), World(wanted=(1, 2))),
    Case("a slow start of three, stopped and begun anew", Rule(), from_(3, (0,), (3,), kills=1, refusals=1), WAVES),
    Case("a slow start of three, scaled between its waves", Rule(), from_(3, (0,), (3,), kills=1, scalings=1),
         WAVES._replace(uids=1, events=1)),
    Case("a slow start of three, a loss between its waves", Rule(), from_(3, (0,), (3,), kills=1, losses=1), WAVES),
    Case("a slow start of three of a strict owner", Rule(STRICT), from_(3, (0,), (3,), kills=1, refusals=1), WAVES),
)  # fmt: skip

LIVELY = (
    Case("usual owner", Rule(), from_(2, (0, 1), (0, 1), kills=1, ends=1), World(uids=3), full),
    Case("a name refused for ever is passed over", Rule(), from_(3, (0, 1), (0, 2), kills=1, scalings=1),
         REFUSED, full),
    Case("two such names, one may be passed over: one short", Rule(), from_(4, (0, 2), (0, 2), scalings=1),
         REFUSED._replace(refused_creates=frozenset({0, 1})), one_short),
    Case("everything else goes on before D", Rule(BARE, create_forgotten="never"),
         from_(3, (0, 1, 2), (0, 2), scalings=1), REFUSED, one_short),
    Case("so it does while a delete is refused for ever", Rule(BARE, delete_forgotten="never"),
         from_(3, (0, 1, 2), (0, 2), scalings=1), UNDELETABLE._replace(fails=False), one_over),
    Case("strict owner, a name refused for ever: one short before D", Rule(STRICT, create_forgotten="never"),
         from_(3, (0, 1, 2), (0, 2), ends=1, scalings=1), REFUSED._replace(fails=True), one_short),
    Case("strict owner, a failed pod that cannot be deleted: one short", Rule(STRICT, delete_forgotten="never"),
         from_(3, (0, 1, 2), (2,), ends=2), UNDELETABLE, one_short),
    Case("names that are never sent hold nothing up", Rule(BARE, create_forgotten="never"),
         from_(4, (0,), (4,), scalings=1), FOUR, one_short),
    Case("a slow start that is killed between its waves", Rule(), from_(3, (0,), (3,), kills=1),
         WAVES._replace(uids=3), full),
    Case("node", Rule(NODE), from_(1, (0, 1), (1,), kills=1, ends=2), FAILING._replace(uids=4), full),
    Case("node, a foreign pod", Rule(NODE), from_(2, (0,), (1,), kills=1, ends=1, foreign=1),
         FAILING._replace(uids=3), full),
    Case("node, a loss", Rule(NODE), from_(1, (0, 1), (1,), kills=1, ends=1, losses=1), FAILING._replace(uids=4), full),
    Case("surging node", Rule(SURGING), from_(2, (0, 1), (1,), kills=1, ends=1), SURGES._replace(uids=3), full),
)  # fmt: skip

LOSSY = from_(2, (0,), (1,), kills=1, losses=1)
FAILED_ONCE = from_(1, (0, 1), (1,), kills=1, ends=1)
FOREIGN_ONCE = from_(2, (0,), (1,), kills=1, foreign=1)

MUTANTS = (
    Case("delete forgotten without GET", Rule(delete_forgotten="D"), STEADY),
    Case("delete forgotten before D", Rule(delete_forgotten="GET"), STEADY),
    Case("creates again while active + again <= wanted", Rule(repeat_creates="active"),
         from_(2, (0,), (2,), kills=1, scalings=1), UP_TO_2),
    Case("a terminating bearer frees the name's place", Rule(counts_terminating=False), STEADY, World(uids=3)),
    Case("a foreign bearer frees the name's place", Rule(counts_terminating=False), FOREIGN_ONCE),
    Case("no reservation", Rule(reserve="never"), STEADY),
    Case("reserved after the cache was consulted", Rule(reserve="unshown"), FOREIGN_ONCE),
    Case("an answer ends the reservation", Rule(answer_frees=True), STEADY),
    Case("a refused repeat drops the delete", Rule(refusal_keeps=False), STEADY),
    Case("reservation ends by time only", Rule(reserved_until="D"), STEADY, World(events=3)),
    Case("reservation ends before D", Rule(reserved_until="GET"), STEADY),
    Case("create dropped without GET", Rule(create_forgotten="D"), STEADY),
    Case("create dropped before D", Rule(create_forgotten="GET"), STEADY),
    Case("unwanted creates again", Rule(repeat_creates="always"), SCALED),
    Case("unwanted deletes again", Rule(repeat_deletes="always"), from_(2, (2,), (1, 0), kills=1, ends=1, scalings=1)),
    Case("deletes again up to active - wanted", Rule(repeat_deletes="active"),
         from_(3, (3,), (1,), kills=1, scalings=1), UP_TO_2),
    Case("new deletes by active - wanted", Rule(delete_by="active"), STEADY),
    Case("unknown creates do not count", Rule(create_by="active"), STEADY),
    Case("own creates need not be read", Rule(needs=False), STEADY),
    Case("own deletes need not be read", Rule(answered_is_barrier=False), STEADY),
    Case("no wait after a loss", Rule(drain=False), from_(2, (0, 1, 2), (1,), kills=1, ends=1, losses=1)),
    Case("a delete again at a fresh version", Rule(fresh_version=True), from_(2, (2,), (1,), kills=2, touches=1)),
    Case("passed over before D", Rule(create_forgotten="GET"), from_(2, (0,), (1,), kills=1)),
    Case("strict owner that counts active pods", Rule(STRICT, strict_passes_terminating=True), STEADY, FAILING),
    Case("strict owner that passes names over", Rule(Kind(strict=True, passes=1), drain=False), LOSSY),
    Case("deletes before D after a loss", Rule(STRICT, drain=False, early_deletes=True),
         from_(2, (2,), (1,), kills=1, losses=1)),
    Case("not listed anew when D has passed", Rule(STRICT, drain=False, lists_again=False),
         from_(2, (2,), (1,), kills=1, losses=1)),
    Case("node whose k advances by refusals", Rule(Kind(strict=True, bound=1, passes=1), drain=False), LOSSY),
    Case("node whose k advances past a resting name", Rule(NODE, passes_resting=True, drain=False),
         from_(2, (1,), (1,), ends=1, losses=1), FAILING),
    Case("node that forgets what is under way past a foreign pod", Rule(NODE, create_by="active"), FOREIGN_ONCE),
    Case("rest marked with the answer", Rule(NODE, marks_rest="answered"), FAILED_ONCE, FAILING),
    Case("rest counted from the delete", Rule(NODE, rest_from="announced"), FAILED_ONCE, FAILING),
    Case("a reserved name does not rest", Rule(NODE, repeat_wins_rest=True), FAILED_ONCE, FAILING),
    Case("surging node: unknown creates do not count", Rule(SURGING, create_by="active"),
         from_(3, (0, 1), (1, 2), kills=1, ends=1), SURGES),
    Case("rolling update: unknown deletes are available", Rule(ROLLING, delete_by="active"),
         from_(2, (2,), (1,), kills=1), ROLLS),
    Case("rolling update: deletes again although undone", Rule(ROLLING, repeat_deletes="always"),
         from_(2, (2,), (1,), kills=1, scalings=1), ROLLS),
    Case("waves that nobody announced", Rule(names_waves=False), from_(2, (0,), (2,), kills=1, scalings=1), UP_TO_2),
    Case("with the rest what has no answer is dropped", Rule(unsent="unanswered"), STEADY),
    Case("rest: names that were never sent stay announced",
         Rule(BARE, create_forgotten="never", unsent="kept"), from_(4, (0,), (4,), scalings=1), FOUR, one_short),
    Case("rest: the barrier", Rule(BARE, barrier=True, create_forgotten="never"),
         from_(3, (0, 1, 2), (0, 2), scalings=1), REFUSED, one_short),
    Case("rest: nothing is passed over", Rule(BARE), from_(3, (0, 1), (0, 2), scalings=1), REFUSED, full),
    Case("rest: unanswered creates are never forgotten", Rule(BARE, create_forgotten="never", repeat_creates="never"),
         from_(2, (0,), (1,), kills=1), World(), full),
    Case("rest: unanswered deletes are never forgotten", Rule(delete_forgotten="never", repeat_deletes="never"),
         from_(2, (2,), (1,), kills=1), World(), full),
    Case("rest: failed pods first", Rule(STRICT, delete_forgotten="never", failed_first=True),
         from_(3, (0, 1, 2), (2,), ends=2), UNDELETABLE, one_short),
    Case("rest: a pause without end", Rule(NODE, pause_ends=False), FAILED_ONCE, FAILING._replace(uids=3), full),
)  # fmt: skip

THREE = World(events=2, uids=2, wanted=(0, 1, 2))
WIDE = (
    Case("usual owner, two names", Rule(), from_(2, (0, 1, 2), (0, 1), kills=2, ends=2, scalings=1, refusals=1)),
    Case("usual owner, three names", Rule(),
         from_(3, (0, 1, 2, 3), (1, 2), kills=2, ends=1, scalings=1, refusals=1), THREE),
    Case("usual owner, two names, a loss", Rule(), from_(2, (0, 1, 2), (1,), kills=2, ends=1, scalings=1, losses=1)),
    Case("usual owner, foreign and changing pods", Rule(),
         from_(2, (0, 1, 2), (1,), kills=2, ends=1, scalings=1, foreign=1, touches=1), FAILING),
    Case("strict owner, three names", Rule(STRICT), from_(3, (0, 1, 2, 3), (1, 2), kills=2, ends=1, scalings=1),
         THREE._replace(fails=True)),
    Case("strict owner, a loss", Rule(STRICT),
         from_(2, (0, 1, 2), (1,), kills=2, ends=1, scalings=1, losses=1), FAILING),
    Case("strict owner, creates before D after a loss", Rule(STRICT, drain=False),
         from_(3, (0, 1, 2), (1, 2), kills=2, ends=2, losses=1, scalings=1), THREE._replace(fails=True)),
    Case("node, losses, creates before D", Rule(NODE, drain=False),
         from_(2, (0, 1), (0, 1), kills=2, ends=2, losses=2, scalings=1), FAILING._replace(uids=3)),
    Case("node, a foreign pod", Rule(NODE), from_(3, (0, 1), (0, 1), kills=2, ends=2, foreign=1, scalings=1),
         FAILING._replace(uids=3)),
    Case("surging node", Rule(SURGING), from_(3, (0, 1, 2), (1, 2), kills=2, ends=1, scalings=1), SURGES),
    Case("surging node, a foreign pod", Rule(SURGING),
         from_(3, (0, 1), (1, 2), kills=2, foreign=1, scalings=1), SURGES),
    Case("rolling update, two nodes", Rule(ROLLING), from_(2, (2,), (1, 2), kills=2, ends=1, scalings=1), ROLLS),
    Case("rolling update, three nodes", Rule(ROLLING), from_(3, (3,), (2,), kills=2, ends=1, scalings=1),
         ROLLS._replace(wanted=(2, 3))),
    Case("a slow start of four, scaled between its waves", Rule(), from_(4, (0, 1), (4,), kills=1, scalings=1),
         World(uids=1, wanted=(2, 4))),
    Case("a slow start of three, killed twice", Rule(), from_(3, (0,), (3,), kills=2, scalings=1, refusals=1), WAVES),
    Case("a slow start of three of a strict owner", Rule(STRICT), from_(3, (0,), (3,), kills=2, scalings=1), WAVES),
    Case("a slow start of three, pods that end", Rule(), from_(3, (0, 1), (3,), kills=2, ends=1, scalings=1), WAVES),
    Case("rest: usual owner, scaled, a name refused", Rule(), from_(3, (0, 1, 2), (0, 2), kills=1, ends=1, scalings=1),
         REFUSED, full),
    Case("rest: strict owner", Rule(STRICT), from_(2, (0, 1, 2), (0, 1), kills=1, ends=1, scalings=1),
         FAILING._replace(uids=3), full),
    Case("rest: node", Rule(NODE), from_(1, (0, 1), (0, 1), kills=1, ends=2, scalings=1, losses=1),
         FAILING._replace(uids=4), full),
    Case("rest: surging node", Rule(SURGING), from_(2, (0, 1), (1, 2), kills=1, ends=1, scalings=1),
         SURGES._replace(uids=3), full),
)  # fmt: skip
