"""Which names of daemon pods the checker takes to be borne again too soon."""

from __future__ import annotations

import orjson
import pytest

from oarlock.broker.values import Claim, Entry
from oarlock.workers.turn.steps import Write
from tests.manual_clock import ManualClock
from tests.simulation import daemon_docs as docs
from tests.simulation.checker import Violation
from tests.simulation.daemon_checker import DaemonChecker
from tests.simulation.daemon_failures import REST_MS
from tests.simulation.daemon_world import DaemonWorld
from tests.simulation.traffic import View
from tests.simulation.world import NAMESPACE

POD, UID = "agent-a", "pod-1"


class Rig:
    """A DaemonSet with a failed pod, which a finalizer holds."""

    def __init__(self) -> None:
        self._clock = ManualClock()
        self._world = DaemonWorld(self._clock.mono_ms, wall_ms=self._clock.wall_ms)
        self._checker = DaemonChecker(self._world)
        self._world.on_change = self._checker.changed
        self._world.on_create, self._world.on_delete = self._checker.created, self._checker.deleted
        pods, update = docs.template("agent", "a"), docs.strategy(1)
        owner = docs.daemonset("agent", "set-1", pods, update, min_ready_s=0, limit=10, numbered=False)
        self._world.put("daemonsets", owner)
        self._pod = docs.pod(POD, UID, "agent", "n1", owner)
        self._pod["metadata"]["finalizers"] = ["example.com/slow"]
        self._pod["status"]["phase"] = "Failed"
        self._world.put("pods", self._pod)

    def play(self, steps: tuple[str, ...]) -> None:
        for step in steps:
            getattr(self, step)()

    def announced(self) -> None:
        """A turn has entered the delete in the record."""
        claim = Claim("daemonset", f"{NAMESPACE}/agent", "nonce", None, [], None, "", False, 0)
        self._checker.announced(claim, [Entry("delete", f"pods/{POD}", UID, "1")])

    def lost(self) -> None:
        """Redis has lost its data."""
        self._checker.new_epoch()

    def deleted(self) -> None:
        """The server commits our delete."""
        assert self._world.answer_to(Write("delete", "pods", NAMESPACE, POD, uid=UID), "").code == 200

    def borne(self, after_ms: int) -> None:
        """The pod has gone; so much later the server commits our create, of a turn that has just begun."""
        self._clock.advance(5)
        self._world.remove("pods", POD)
        self._clock.advance(after_ms)
        self._world.landing = View(at_ms=self._clock.mono_ms())
        assert self._world.answer_to(Write("create", "pods", NAMESPACE, POD, orjson.dumps(self._pod)), "").code == 201


TOO_SOON = [
    pytest.param(("announced", "deleted"), id="announced"),
    pytest.param(("announced", "lost", "announced", "deleted"), id="announced again in the next epoch"),
]
LOST = [
    pytest.param(("announced", "lost", "deleted"), id="announced in an earlier epoch, deleted in this one"),
    pytest.param(("announced", "deleted", "lost"), id="deleted in an earlier epoch"),
]


@pytest.mark.parametrize("steps", TOO_SOON)
def test_borne_too_soon(steps: tuple[str, ...]) -> None:
    """The name must rest."""
    rig = Rig()
    rig.play(steps)
    with pytest.raises(Violation, match=f"rest: {POD} is borne again {REST_MS - 1} ms after it went"):
        rig.borne(REST_MS - 1)


@pytest.mark.parametrize("steps", TOO_SOON)
def test_borne_after_its_rest(steps: tuple[str, ...]) -> None:
    """Then it is free."""
    rig = Rig()
    rig.play(steps)
    rig.borne(REST_MS)


@pytest.mark.parametrize("steps", LOST)
def test_borne_at_once(steps: tuple[str, ...]) -> None:
    """What made the name rest was lost with the record."""
    rig = Rig()
    rig.play(steps)
    rig.borne(1)
