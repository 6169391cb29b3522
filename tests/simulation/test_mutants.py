"""Each mechanism of the protocol, taken out in turn, must be missed: some seed has to break an invariant.

A mechanism whose absence no run notices is either not needed or not tested. Some parts of the rule for open writes are
beyond these runs, as it takes two coincidences within one D to need them; the model in ``tests/model`` takes each of
them out and finds the history that misses it:

- a delete is forgotten only after D and a look, and a refusal of one that was sent before does not end it (two victims
  in a row, with the first one unchanged and its request under way all the time);
- a reservation that ends with the bearer's event, or by time without a look; a create that ends without one (a cache
  that is behind by more than D);
- D begins anew with each send (a send that is under way longer than the rest of an older one's D).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from oarlock.broker.memory import cache, claim
from oarlock.broker.memory.memory_broker import MemoryBroker
from oarlock.broker.memory.state import FRONT, EpochState
from oarlock.broker.steps.loading import with_children
from oarlock.broker.values.claims import Batch, Claim, ClaimLimits, Idle, LoadSpec, Unloaded
from oarlock.broker.values.errors import EpochOver
from oarlock.controllers.plan import Unanswered
from oarlock.controllers.pods.slots import Slots
from oarlock.controllers.replicaset import decide
from oarlock.workers.turn import acting, expectations, turn
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.bursts import bursts_of
from tests.simulation.checker import Violation
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.mutants import Mutant, distinct, take_out
from tests.simulation.redis_rig import RedisRig
from tests.simulation.scenarios import FEW, REFUSING, WAITING
from tests.simulation.simulation import Simulation, Weights
from tests.simulation.world import World

ROUGH = Weights(kill=4, freeze=4, lose_answer=6, ingestor=4, supervise=10, kubelet=12)
"""A bit of everything."""
TURNOVER = Weights(
    **{"worker": 60, "land": 6, "ingest": 20, "supervise": 12, "kubelet": 16, "user": 5, "kill": 4, "freeze": 0},
    **{"lose_answer": 1, "ingestor": 0, "pace_ms": (0, 1, 5, 10, 20), "wishes": (1, 2), "deeds": ("delete",)},
    keeps_dead_writes=0.9,
)
"""Pods come and go while a write of a dead worker is still under way."""
SCALING = replace(TURNOVER, wishes=(1, 2, 4), deeds=("scale",))
GRAVES = replace(
    SCALING,
    **{"aimed": "delete", "kill": 4, "wishes": (0, 1), "user": 8, "kubelet": 40, "ingest": 40, "land": 12},
    **{"keeps_dead_writes": 0.97, "pace_ms": (0, 0, 0, 1, 5)},
)
"""Names are used again while a delete of a dead worker is still under way."""
LAGGING = replace(TURNOVER, land=14, ingest=5, kill=1, keeps_dead_writes=0.0)
"""The cache is far behind."""
RELEASING = Weights(deeds=("relabel",), user=6, kubelet=4, kill=0, freeze=0, lose_answer=0, ingestor=0)
"""Pods are let go and taken, and nothing else happens that would wake their owners."""
NO_NAMES = replace(REFUSING, refuses={"create": 0.5}, wishes=(1, 2, 4))
"""Creates are answered with 500."""
NO_ENDS = replace(
    REFUSING,
    **{
        "refuses": {"delete": 0.8},
        "refuses_most": 6,
        "wishes": (2, 4, 6),
        "deeds": ("scale",),
        "user": 8,
        "kubelet": 4,
    },
)
"""Deletes are, and what is wanted changes."""
NEITHER = replace(REFUSING, refuses={"create": 0.4, "delete": 0.6}, wishes=(1, 2, 5), user=6, faulty=0.1)
LISTING = replace(ROUGH, ingestor=12, ingest=30)
LOSSES = replace(TURNOVER, redis=1, supervise=20, pace_ms=(0, 1, 20, 100, 400), deeds=("delete", "fail"))
NO_ASSUMPTIONS: dict[str, Any] = {"strict": True, "residue_ms": 600_000, "drain": False}
"""Strict owners: writes land whenever they like, Redis is lost without a drain."""
STOPPED = replace(
    TURNOVER, **{"aimed": "create", "kill": 6, "wishes": (1, 4, 7), "lose_answer": 3, "deeds": ("scale", "delete")}
)
"""Slow starts are killed between their waves, or stop for want of an answer."""
CROWDED: dict[str, Any] = {"owners": 4, "front": 1}
"""Keys wait behind the front of their queue."""
STEERED = Weights(people=8, supervise=14, user=4, kill=2)
"""People steer."""
SEEDS_MAX = 3000
STEPS = 400


def _any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names as upstream draws them: no two the same."""
    serial = iter(range(10**9))

    def free(self: Slots, taken: Any) -> Iterator[str]:
        while True:
            yield f"{self.base}{next(serial)}"

    monkeypatch.setattr(Slots, "free", free)


def _no_preconditions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "checks_preconditions", False)


def _needs_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    real = turn.turn

    def careless(claim: Claim, *args: Any) -> Any:
        return real(claim._replace(min_rv=""), *args)

    monkeypatch.setattr("oarlock.workers.turn.engine.turn_engine.turn", careless)


def _nobody_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "readers", lambda state, resource, rv: [])


def _marks_after_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pods are those of the claim; what the cache has passed is asked when the rest is loaded."""
    real = MemoryBroker.claim

    def claim_whole(
        self: MemoryBroker, holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits
    ) -> Batch | Idle:
        batch = real(self, holder, nonce, specs, limits._replace(load_min=0))
        if isinstance(batch, Idle):
            return batch
        nothing = (Unloaded("pods", cache.generation(self.store.state, "pods"), "", ()),)
        return replace(batch, claims=[each._replace(unloaded=nothing) for each in batch.claims])

    def load(state: EpochState, batch: Batch) -> Batch:
        judged = [each._replace(min_rv=claim._waiting_min_rv(state, each.queue, each.key)) for each in batch.claims]
        return with_children(replace(batch, claims=judged), [[] for _ in judged])

    monkeypatch.setattr(MemoryBroker, "claim", claim_whole)
    monkeypatch.setattr(cache, "load", load)


NOTHING_OPEN = "not writes.unanswered.creates and not writes.unanswered.deletes"

MUTANTS: dict[str, Mutant] = {
    "announce takes any nonce": Mutant((("announce", "nonce_of(lock) ~= nonce", "false"),), first=7),
    "finish takes any nonce": Mutant((("finish", "if found ~= nonce then", "if not found then"),), first=150),
    "marks are read after the pods": Mutant(
        patch=_marks_after_pods, weights=replace(LAGGING, ingest=9, worker=70), first=4101
    ),
    "a pod is lost on the way from the cache": Mutant(
        code=((cache._loaded, "return [each.cached for each in found]", "return [each.cached for each in found[1:]]"),)
    ),
    "release does not requeue": Mutant(
        (
            ("release", "    append(queue, key, why)\n", "    redis.call('HDEL', base .. queue .. ':state', key)\n"),
            (
                "lib/locks",
                "if crashes == 1 then return append(queue, key, why) end",
                "if crashes == 1 then return end",
            ),
        )
    ),
    "reclaim does not requeue": Mutant(
        (("reclaim", "    append(queue, key, why)\n", "    redis.call('HDEL', base .. queue .. ':state', key)\n"),)
    ),
    "a change during a turn is forgotten": Mutant(
        (("lib/queue", "return 'running+ ', why", "return 'running ', why"),)
    ),
    "new creates do not count with what may come": Mutant(
        code=((decide._names, "- occupied - len(maybe_new)", "- occupied"),), weights=NO_NAMES
    ),
    "creates are sent again though too many may come": Mutant(
        code=((decide._names, "if room < 0:\n        return []", "room = max(0, room)"),), weights=NO_NAMES
    ),
    "new deletes do not count with what may go": Mutant(
        code=((decide._surplus, "surplus -= len(claimed) - len(staying)", "pass"),),
        weights=NEITHER,
        first=29,
    ),
    "obsolete deletes are sent again": Mutant(
        code=((decide._surplus, "if surplus < 0:\n            return (), False, ()", "surplus = max(0, surplus)"),),
        weights=NO_ENDS,
        first=1287,
    ),
    "what is open stops everything": Mutant(
        code=((turn._snapshot, "satisfied = not", f"satisfied = {NOTHING_OPEN} and not"),), weights=NEITHER, first=325
    ),
    "a name that is borne is not open": Mutant(
        code=((decide._names, "creates - counted if", "creates - counted - {pod.name for pod in snapshot.pods} if"),),
        weights=TURNOVER,
        first=817,
    ),
    "reserved names do not count": Mutant(
        code=((expectations._Known.told, "[*self._creates, *self._reserved]", "self._creates"),),
        weights=TURNOVER,
        first=817,
    ),
    "a reservation ends with the answer": Mutant(
        code=(
            (
                TurnOutcome.answered,
                'self.over(f"{write.verb} {write.target}")',
                "self.changes += [Change.drop(f'{verb} {write.target}') for verb in (write.verb, 'reserved')]",
            ),
        ),
        weights=TURNOVER,
        first=216,
    ),
    "creates are settled before D": Mutant(
        code=((expectations._Known.look, "in self._creates.items() if opened.over", "in self._creates.items()"),),
        weights=TURNOVER,
        first=48,
    ),
    "names are not reserved": Mutant(
        code=((claim._timed_expectations, 'name.startswith("create ")', "False"),),
        weights=TURNOVER,
        first=817,
    ),
    "deletes do not say what they mean": Mutant(patch=_no_preconditions, weights=GRAVES, first=489),
    "own writes need not be read": Mutant(
        patch=_needs_ignored,
        weights=LAGGING,
        first=43,
    ),
    "names are drawn": Mutant(patch=_any_name, weights=LOSSES, options=NO_ASSUMPTIONS),
    "the passing of a need wakes nobody": Mutant(patch=_nobody_woken, weights=RELEASING, options={"owners": 2}),
    "old events are applied": Mutant(
        (
            ("ingest", "if newer(rv, mark) then", "if true then"),
            ("ingest", "if newer(ARGV[i + 2], mark) then", "if true then"),
        )
    ),
    "an old list is committed": Mutant(
        (("commit_list", "if mark and newer(mark, rv) then", "if false then"),), weights=LISTING
    ),
    "a pause keeps no key from a turn": Mutant(
        (("lib/pauses", "if is_paused(scopes, queue, key) or", "if"),), weights=STEERED
    ),
    "a resumed key stays aside": Mutant((("lib/returns", "append(queue, key, why)", ""),), weights=STEERED),
    "a key whose time in line has come is forgotten": Mutant(
        (("lib/limits", "append(queue, key, why)", ""),), weights=STEERED
    ),
    "a key that comes anew passes the line": Mutant(
        (("lib/limits", "free and last == 0 and next_ms <= now,", "true,"),), weights=STEERED
    ),
    "a pause that ends by itself brings nothing back": Mutant(
        (("due", "  begin_return()\n", ""),), weights=STEERED, first=24
    ),
    "a drained worker goes on": Mutant((("claim", "then return {'DRAIN'} end", "then end"),), weights=STEERED),
    "a drained supervisor begins workers": Mutant(
        (("register", "if redis.call('ZSCORE', base .. 'drains', ARGV[2]) then", "if false then"),), weights=STEERED
    ),
    "what leaves a class is not counted off": Mutant((("ingest", "count(recounted, was, old_class, -1)", ""),)),
    "a list is not counted": Mutant(
        (("stage", "count(recounted, is, class, 1)", ""),),
        weights=LISTING,
        first=17,
    ),
    "counts are kept through a list": Mutant(
        (("lib/summary", "resource .. ':' .. gen .. ':' .. entry", "resource .. ':' .. entry"),), weights=LISTING
    ),
    "what was never sent is not dropped": Mutant(code=((acting.create_pods, "in ordered[sent:named]", "in ()"),)),
    "what is under way is dropped with what was never sent": Mutant(
        code=((acting.create_pods, "in ordered[sent:named]", "in ordered[: named if sent < named else 0]"),)
    ),
    "later waves are not announced": Mutant(
        code=((acting.create_pods, "ordered[named:upto]", "ordered[named : sent + len(wave)]"),)
    ),
    "what a dead worker announced is sent all at once": Mutant(
        code=((acting.create_pods, "pace.add(len(ordered))", "pace.__init__(len(ordered), len(again) or 1)"),),
        weights=STOPPED,
    ),
    "a turn that goes on does not count what it has created": Mutant(
        code=(
            (Unanswered.with_created, "replace(self, creates=creates,", "replace(self, passed=self.passed | names,"),
        ),
        weights=FEW,
        options={"burst": 2},
    ),
    "a key that finds the front full is forgotten": Mutant(
        (("lib/queue", "    line_up(queue, key, lane_of_why(key, why), front)\n", ""),), options=CROWDED
    ),
    "a key that was claimed stays behind the front": Mutant(
        (("lib/queue", "redis.call('ZREM', base .. queue .. ':backlog', unpack(keys))", ""),), options=CROWDED
    ),
    "one key too many leaves the backlog": Mutant(
        (
            (
                "lib/queue",
                "redis.call('ZREM', base .. queue .. ':backlog', unpack(keys))",
                "redis.call('ZREMRANGEBYRANK', base .. queue .. ':backlog', 0, #keys)",
            ),
        ),
        options=CROWDED,
    ),
    "a key that moves up is forgotten": Mutant(
        (
            (
                "lib/queue",
                "  if place then line_up(",
                "  if place then redis.call('ZREM', base .. queue .. ':backlog', key) elseif false then line_up(",
            ),
        ),
        weights=LISTING,
        options=CROWDED,
    ),
    "a key that crashed a worker is claimed beside others": Mutant(
        (
            ("claim", "if alone or crowded", "if crowded"),
            ("claim", "if lone_key and lets_its_turns_end(queue)", "if false"),
        ),
        weights=WAITING,
        options={"owners": 4},
    ),
    "what is passed over goes with what is taken": Mutant(
        (("claim", "  if passed_over then\n", "  if false then\n"),),
        weights=WAITING,
        options={"owners": 4},
        first=23,
    ),
    "what leaves does not wake its old owner": Mutant(
        (("ingest", "wakes == old_wakes and wakes or old_wakes", "wakes == old_wakes and '' or ''"),),
        first=14,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_is_missed(name: str, redis_rig: RedisRig, memory_rig: MemoryRig, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    rig = redis_rig if mutant.script else memory_rig
    take_out(mutant, monkeypatch)
    for seed in range(mutant.first, mutant.first + SEEDS_MAX):
        try:
            _run(rig, mutant, seed, mark=name)
        except (Violation, EpochOver) as found:  # or the scripts themselves find that the data are damaged
            print(f"missed by {seed}: {found}")
            return
    pytest.fail(f"{SEEDS_MAX} runs without this mechanism broke nothing")


@pytest.mark.parametrize("name", distinct(MUTANTS))
def test_the_same_runs_pass_with_it(name: str, memory_rig: MemoryRig) -> None:
    """The conditions that show a mutant break nothing where nothing was taken out."""
    for seed in range(30):
        _run(memory_rig, MUTANTS[name], seed)


def _run(rig: RedisRig | MemoryRig, mutant: Mutant, seed: int, mark: str = "") -> None:
    options = {"owners": 1, "front": FRONT, "burst": 0, **mutant.options}
    rig.reset(mark, options.pop("front"))
    with bursts_of(options.pop("burst")):
        Simulation(seed, rig.broker, rig.clock, weights=mutant.weights or ROUGH, **options).run(STEPS)
