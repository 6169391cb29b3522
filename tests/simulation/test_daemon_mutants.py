"""Each mechanism that DaemonSets rely on, taken out in turn, must be missed: some seed has to break an invariant.

How a node's open creates and deletes count against its bound and the limits of an update is beyond these runs, for the
names alone keep most of it; the model in ``tests/model`` takes each of these parts out.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from oarlock.broker.expectations import BACK_OFF
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Delta
from oarlock.broker.values.turns import Change
from oarlock.controllers.daemonset import decide as deciding
from oarlock.controllers.daemonset import names
from oarlock.controllers.registry import FAN_OUTS
from oarlock.workers.turn import acting, expectations, revisions, turn
from oarlock.workers.turn.engine.local_cache import LocalCache
from oarlock.workers.turn.steps import Write
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.simulation.checker import Violation
from tests.simulation.daemon_cluster import Habits
from tests.simulation.daemon_scenarios import CHANGES, FAILS, HISTORY, NODES, ROUGH, SCENARIOS, SURGES
from tests.simulation.daemon_simulation import DaemonSimulation, with_second_fleet
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.mutants import Mutant, distinct, take_out
from tests.simulation.redis_rig import RedisRig
from tests.simulation.test_mutants import NOTHING_OPEN

SEEDS_MAX = 1500
STEPS = 1500
QUICK = (0, 0, 0, 0, 1, 1, 5, 20)

TWO_FLEETS: dict[str, Any] = {"second": True}
BACK_AND_FORTH = replace(
    ROUGH,
    habits=Habits(deeds=("image",), images=("a", "b"), fails=0, unreadies=0, strategies=((1, 0),)),
    **{"nodes": 0, "user": 8, "kubelet": 60, "ingest": 30, "lag": 0.3, "kill": 0, "freeze": 0},
    **{"faulty": 0.0, "poor": 0.0},
)
"""Rolled out and back while the cache is behind."""
SHAKY = replace(
    ROUGH,
    habits=Habits(deeds=("image",), fails=0, unreadies=0.4, readies=0.6, strategies=((1, 0),)),
    **{"nodes": 0, "user": 3, "kubelet": 90, "kill": 0, "freeze": 0, "faulty": 0.0, "poor": 0.0},
)
"""Pods become ready, and not."""
HANGING = replace(
    ROUGH,
    habits=Habits(deeds=("hang", "delete"), fails=0, unreadies=0, hangs=0.97),
    **{
        "nodes": 0,
        "user": 40,
        "kubelet": 150,
        "kill": 12,
        "aimed": "create",
        "supervise": 30,
        "ingest": 100,
        "freeze": 0,
    },
    **{"pace_ms": (0, 0, 0, 0, 0, 0, 1, 5), "faulty": 0.0, "poor": 0.0, "keeps_dead_writes": 0.99},
)
"""Pods end and hang while a write of a dead worker is still under way."""
CALM_PODS = replace(
    ROUGH,
    habits=Habits(changes=("taint", "label"), places=("blue", "anywhere"), fails=0, unreadies=0, min_ready_s=(0,)),
    **{"nodes": 2, "user": 0, "kubelet": 90, "kill": 0, "freeze": 0, "faulty": 0.0, "poor": 0.0, "ingestor": 0},
)
"""Only nodes change."""
FAILING = replace(
    ROUGH,
    habits=replace(FAILS, deeds=("delete",), fails=0.7),
    **{"nodes": 0, "user": 0, "kubelet": 60, "kill": 6, "supervise": 14, "pace_ms": QUICK, "freeze": 0},
)
FAILING_ON = replace(
    FAILING,
    habits=replace(FAILS, deeds=("delete",), fails=1.0),
    **{"pace_ms": (0, 5, 20, 50, 100), "ingest": 90, "kubelet": 80, "kill": 10, "aimed": "delete"},
    **{"faulty": 0.0, "poor": 0.0, "lose_answer": 0},
)
"""Until their back-off is longer than the rest of a name."""


def _surges_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = deciding.choose

    def choose(naming: Any, nodes: Any, podmap: Any, taken: Any, wanted: int, limit: int, most: int) -> Any:
        return plain(naming, nodes, podmap, taken, 9, 9, most)

    monkeypatch.setattr(deciding, "choose", choose)


def _names_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As upstream draws them: no two the same."""
    serial = count()
    plain = deciding.choose

    def choose(*args: Any) -> Any:
        return {f"{name}-{next(serial)}": node for name, node in plain(*args).items()}

    monkeypatch.setattr(deciding, "choose", choose)


def _nothing_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither our own writes nor the deletes have to be in the cache."""
    real = turn.turn

    def careless(claim: Claim, *args: Any) -> Any:
        return real(claim._replace(min_rv=""), *args)

    monkeypatch.setattr("oarlock.workers.turn.engine.turn_engine.turn", careless)
    monkeypatch.setattr(TurnOutcome, "deletes_seen", lambda self, deletes, present: True)


def _deletes_without_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(verb: str, *args: Any, **kwargs: Any) -> Write:
        made = Write(verb, *args, **kwargs)
        return made._replace(rv="") if verb == "delete" else made

    monkeypatch.setattr(acting, "Write", write)


def _gone_nodes_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    real = LocalCache.apply
    monkeypatch.setattr(LocalCache, "apply", lambda self, delta: real(self, Delta(*delta)._replace(gone=())))


def _fan_out_without_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    for queue, via in FAN_OUTS.items():
        monkeypatch.setitem(FAN_OUTS, queue, type(via)(**{**_fields(via), "children": ()}))


def _fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _back_off_told_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept with the answers, not with the announcement: whoever is killed in between takes it along."""
    real = acting.delete_pods

    def delete_pods(
        owner: Any, plan: Any, versions: Mapping[str, str], again: Any, outcome: TurnOutcome
    ) -> Generator[Any, Any, None]:
        bare = type(plan)(**{**_fields(plan), "back_offs": ()})
        yield from real(owner, bare, versions, again, outcome)
        outcome.changes += [Change.set(f"{BACK_OFF} {node}", text) for node, text in plan.back_offs]

    monkeypatch.setattr(acting, "delete_pods", delete_pods)


def _pods_keep_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Duplicates go without their pods being told."""

    def relabel(*args: Any) -> Generator[Any, Any, bool]:
        yield from ()
        return False

    monkeypatch.setattr(revisions, "_relabel", relabel)


def _prunes_what_is_borne(monkeypatch: pytest.MonkeyPatch) -> None:
    real = deciding.prunable
    monkeypatch.setattr(deciding, "prunable", lambda old, live, limit: real(old, (), limit))


MUTANTS: dict[str, Mutant] = {
    "surges have no bound": Mutant(
        patch=_surges_without_bound, weights=replace(ROUGH, habits=SURGES, nodes=0, kubelet=60), options=TWO_FLEETS
    ),
    "names are drawn": Mutant(patch=_names_drawn, weights=replace(ROUGH, habits=CHANGES), options=TWO_FLEETS),
    "reserved names are ignored": Mutant(
        code=((names.Taken.__init__, "unanswered.creates & unanswered.nodes.keys()", "()"),),
        weights=HANGING,
        options={"steps": 1200, "nodes": 5},
        first=432,
    ),
    "nothing is awaited": Mutant(
        patch=_nothing_awaited, weights=BACK_AND_FORTH, options={"nodes": 4, "workers": 2, "steps": 2500}
    ),
    "deletes do not say which version": Mutant(
        patch=_deletes_without_version, weights=SHAKY, options={"nodes": 4, "workers": 2}
    ),
    "hints are lost": Mutant(
        code=((expectations._Known.told, 'hint.removeprefix("node=")', '""'),),
        weights=HANGING,
        options={"nodes": 5},
        first=241,
    ),
    "what is open stops everything": Mutant(
        code=((turn._snapshot, "satisfied = not", f"satisfied = {NOTHING_OPEN} and not"),),
        weights=SCENARIOS["creates are refused"]["weights"],
        options={"nodes": 5},
    ),
    "names do not rest": Mutant(
        code=((expectations._resting, "return names", "return []"),), weights=FAILING, options={"nodes": 4}
    ),
    "rests are not announced": Mutant(
        code=((acting.delete_pods, "if write.uid in plan.rests]", "if False]"),), weights=FAILING, options={"nodes": 4}
    ),
    "an older rest takes the new one along": Mutant(
        code=((acting.delete_pods, "outcome.announced(entries)", "outcome.announced(entries[: len(writes)])"),),
        weights=FAILING,
        options={"nodes": 4},
    ),
    "gone nodes stay in the local cache": Mutant(
        patch=_gone_nodes_kept,
        weights=replace(ROUGH, habits=NODES, nodes=6),
        first=15,
    ),
    "the change log forgets what went": Mutant(
        script=(("lib/changes", "gone[#gone + 1] = id", "local _ = id"),),
        weights=replace(ROUGH, habits=NODES, nodes=6),
        first=19,
    ),
    "changes of nodes are not logged": Mutant(
        script=(("lib/changes", "redis.call('ZADD', changes_key(resource, gen), number(seq), id)", ""),),
        weights=replace(ROUGH, habits=NODES, nodes=6),
        first=5,
    ),
    "the fan-out does not look at pods": Mutant(patch=_fan_out_without_pods, weights=CALM_PODS),
    "back-offs are told at the end": Mutant(
        patch=_back_off_told_at_the_end, weights=FAILING_ON, options={"steps": 3000, "nodes": 2}, first=46
    ),
    "duplicates go before their pods are told": Mutant(
        patch=_pods_keep_their_labels, weights=replace(ROUGH, habits=HISTORY, nodes=0)
    ),
    "revisions go that pods bear": Mutant(
        patch=_prunes_what_is_borne, weights=replace(ROUGH, habits=replace(HISTORY, limits=(0, 1)), nodes=0)
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_is_missed(name: str, redis_rig: RedisRig, memory_rig: MemoryRig, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    take_out(mutant, monkeypatch)
    for seed in range(mutant.first, mutant.first + SEEDS_MAX):
        try:
            run(redis_rig if mutant.script else memory_rig, mutant, seed, mark=name)
        except Violation as violation:
            print(f"missed: {violation}")
            return
    pytest.fail(f"{SEEDS_MAX} runs without this mechanism broke nothing")


@pytest.mark.parametrize("name", distinct(MUTANTS))
def test_the_same_runs_pass_with_it(name: str, memory_rig: MemoryRig) -> None:
    """The conditions that show a mutant break nothing where nothing was taken out."""
    for seed in range(4):
        run(memory_rig, MUTANTS[name], seed)


def run(rig: RedisRig | MemoryRig, mutant: Mutant, seed: int, mark: str = "") -> None:
    """Raises Violation."""
    rig.reset(mark)
    options = dict(mutant.options)
    second, steps = options.pop("second", False), options.pop("steps", STEPS)
    simulation = DaemonSimulation(seed, rig.broker, rig.clock, weights=mutant.weights, **options)
    if second:
        other = MemoryRig()
        with_second_fleet(simulation, other.broker, other.clock, weights=mutant.weights)
    simulation.run(steps)
