"""Turns over owners whose pods come as counts: nothing to write, a status, and what counts cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.broker.values.claims import Claim
from oarlock.workers.turn.engine.turn_engine import LOAD_MIN
from tests.workers.turn.turn_rig import Ended, Rig


class CountingRig(Rig):
    """One owner at rest. ``claimed``: the claims so far; ``calls``: the broker's steps since ``begin``."""

    def __init__(self, replicas: int = 3, **fields: Any) -> None:
        super().__init__()
        self.claimed: list[Claim] = []
        self.calls: list[str] = []
        self.uid = self.owner(replicas, **fields)
        self.rest()
        for pod in self.pods(self.uid):
            self.world.change_pod(pod.name, phase="Running", ready=True, ready_since_ms=self.clock.wall_ms())
        self.rest()
        self.later(60_000)
        self.rest()
        self.engine._broker = _Noting(self.broker, self)  # type: ignore[assignment]

    def turn(self) -> Ended:
        """The one turn that a trigger from outside brings."""
        self.calls.clear()
        self.broker.add("replicaset", ["default/web"])
        (ended,) = self.turns()
        return ended


class _Noting:
    """The broker, with a note of each step of a worker."""

    def __init__(self, broker: Any, rig: CountingRig) -> None:
        self._broker, self._rig = broker, rig

    def __getattr__(self, name: str) -> Any:
        def step(*args: Any, **options: Any) -> Any:
            reply = getattr(self._broker, name)(*args, **options)
            claims = getattr(reply, "claims", [])
            self._rig.claimed += [each._replace(children=[*each.children]) for each in claims]
            if name != "claim" or claims:
                self._rig.calls.append(name)
            return reply

        return step


def test_a_turn_that_finds_nothing_to_do_reads_counts() -> None:
    rig = CountingRig()
    writes = len(rig.api.writes)
    assert rig.turn().error == ""
    assert rig.calls == ["claim", "finish"]
    assert rig.claimed[-1].children == []
    assert list(rig.claimed[-1].counts.values()) == [3]
    assert len(rig.api.writes) == writes


def test_a_status_is_written_from_counts() -> None:
    """And with the resourceVersion of the owner that was claimed."""
    rig = CountingRig()
    rig.world.change_pod(rig.pods(rig.uid)[0].name, ready=False, ready_since_ms=0)
    rig.read()
    (ended,) = rig.turns()
    assert ended.error == ""
    assert sorted(rig.claimed[-1].counts.values()) == [1, 2]
    assert rig.api.writes[-1].verb == "status"
    status = rig.world.owners["web"][1].status
    assert (status.replicas, status.ready, status.available) == (3, 2, 2)


def test_a_pod_with_other_labels_is_released_and_replaced() -> None:
    """Counts show that something is to be done, not to which pod: the pods are looked at. That is one step more."""
    rig = CountingRig()
    changed = rig.pods(rig.uid)[1]
    rig.world.change_pod(changed.name, labels={"app": "else"})
    rig.read()
    rig.calls.clear()
    (ended,) = rig.turns()
    assert ended.error == ""
    assert rig.claimed[-1].counts
    assert rig.calls == ["claim", "look", "look_apart", "announce", "finish"]
    assert rig.world.pods[changed.name][1].owner_refs == ()
    rig.rest()
    assert len(rig.pods(rig.uid)) == 3


@pytest.mark.parametrize("verb", ["create", "delete"])
def test_a_turn_that_acts_is_handed_the_pods_at_once(verb: str) -> None:
    rig = CountingRig()
    rig.world.change_owner("web", replicas=4 if verb == "create" else 2)
    rig.read()
    rig.calls.clear()
    (ended,) = rig.turns()
    assert ended.error == ""
    assert rig.calls == ["claim", "announce", "finish"]
    assert not rig.claimed[-1].counts
    assert rig.api.writes[-1].verb == verb


@pytest.mark.parametrize(("replicas", "calls"), [(LOAD_MIN - 1, ["claim"]), (LOAD_MIN, ["claim", "load"])])
def test_the_pods_of_a_large_owner_are_loaded_after_the_claim(replicas: int, calls: list[str]) -> None:
    rig = CountingRig(replicas)
    rig.world.change_owner("web", replicas=replicas + 1)
    rig.read()
    rig.calls.clear()
    (ended,) = rig.turns()
    assert ended.error == ""
    assert rig.calls == [*calls, "announce", "finish"]
    assert len(rig.claimed[-1].children) == replicas
    assert rig.api.writes[-1].verb == "create"


def test_a_pod_that_is_ready_for_too_short_a_time_needs_the_pods() -> None:
    rig = CountingRig(min_ready_seconds=5)
    rig.turn()
    assert (len(rig.claimed[-1].children), rig.claimed[-1].counts) == (3, {})


def test_counts_that_nobody_can_read_need_the_pods() -> None:
    """They add up, and say nothing that a process of this version has written."""
    rig = CountingRig()
    (classes,) = rig.store.state.summary.values()
    classes[b"+of another version"] = classes.pop(next(iter(classes)))
    assert rig.turn().error == ""
    assert rig.calls == ["claim", "look", "look_apart", "finish"]
    assert len(rig.api.writes) == rig.count("create") + rig.count("status")


def test_a_template_that_went_after_the_claim_is_claimed_anew() -> None:
    """A claim with counts leaves the template out. When it is needed after all, the owner may have another by then."""
    rig = CountingRig()
    changed = rig.pods(rig.uid)[1]
    rig.world.change_pod(changed.name, labels={"app": "else"})
    rig.read()
    batch = rig.claim()
    rig.world.change_owner("web", template=b'{"metadata":{"labels":{"app":"web","v":"2"}}}')
    rig.read()
    writes = len(rig.api.writes)
    assert rig.run(batch, batch.claims[0]).error == ""
    assert len(rig.api.writes) == writes, "nothing is made of a template that nobody asks for any more"
    rig.rest()
    assert len(rig.pods(rig.uid)) == 3
    assert rig.world.pods[changed.name][1].owner_refs == ()


def test_orphans_that_come_after_the_claim_are_seen_with_the_pods() -> None:
    """What a look brings is newer than the claim: an orphan that it shows is adopted, and one is too many then."""
    rig = CountingRig()
    rig.world.change_pod(rig.pods(rig.uid)[1].name, labels={"app": "else"})
    rig.read()
    batch = rig.claim()
    rig.bare_pod("stray", {"app": "web"}, phase="Running", ready=True)
    rig.read()
    ended = rig.run(batch, batch.claims[0])
    assert ended.error == ""
    assert [ref.uid for ref in rig.world.pods["stray"][1].owner_refs] == [rig.uid]
    rig.rest()
    assert len(rig.pods(rig.uid)) == 3
