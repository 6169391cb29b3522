"""Which names of daemon pods the checker takes to be borne again too soon, which deletes to come too soon, and
which nodes to be down.
"""

from __future__ import annotations

import orjson
import pytest

from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Entry
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects import codec
from oarlock.workers.turn.steps import Write
from tests.manual_clock import ManualClock
from tests.simulation import daemon_docs as docs
from tests.simulation.checker import Violation
from tests.simulation.daemon_checker import DaemonChecker
from tests.simulation.daemon_failures import FIRST_MS, REST_MS, Failures
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


class Spinning:
    """Two failed pods of a DaemonSet on one node."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._world = DaemonWorld(self.clock.mono_ms, wall_ms=self.clock.wall_ms)
        self._failures = Failures(self._world)
        owner = docs.daemonset(
            "agent", "set-1", docs.template("agent", "a"), docs.strategy(1), min_ready_s=0, limit=10, numbered=False
        )
        self._world.put("daemonsets", owner)
        self._owner = self._world.tables["daemonsets"]["agent"].obj
        labels = {"app": "agent", HASH_LABEL: "hash"}
        data = {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
        revision = {
            "metadata": {"name": "agent-hash", "uid": "revision-1", "labels": labels},
            "data": data,
            "revision": 1,
        }
        self._world.put("controllerrevisions", revision)
        for number in range(2):
            pod = docs.pod(f"agent-{number}", f"pod-{number}", "agent", "n1", owner)
            pod["metadata"]["labels"] = labels
            pod["status"]["phase"] = "Failed"
            self._world.put("pods", pod)

    def announced(self, nonce: str, *numbers: int) -> None:
        """A turn has begun, and has entered deletes in the record."""
        blob = codec.encode_apart(self._owner)
        claim = Claim("daemonset", self._owner.key, nonce, Cached("1", "set-1", blob), [], None, "", False, 0)
        self._failures.viewed(Batch("daemonset", [claim], {}))
        for number in numbers:
            self._failures.announced(claim, Entry("delete", f"pods/agent-{number}", f"pod-{number}", "1"))

    def deleted(self, number: int) -> None:
        """The server commits a delete."""
        self._failures.deleted(self._world.tables["pods"][f"agent-{number}"].obj, "set-1")


def test_two_failed_pods_at_once() -> None:
    spinning = Spinning()
    spinning.announced("a", 0, 1)
    spinning.deleted(0)
    with pytest.raises(Violation, match="back-off: agent-1 was deleted 0 ms after the last"):
        spinning.deleted(1)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_delete_that_is_sent_again_was_decided_before(order: tuple[int, int]) -> None:
    """The next one may go with it, and either may land first."""
    spinning = Spinning()
    spinning.announced("a", 0)
    spinning.clock.advance(FIRST_MS)
    spinning.announced("b", 0, 1)
    for number in order:
        spinning.deleted(number)


class Rolling:
    """A DaemonSet that may do without one of its pods, all of which are available, on three nodes."""

    def __init__(self) -> None:
        clock = ManualClock()
        self._world = DaemonWorld(clock.mono_ms, wall_ms=clock.wall_ms)
        checker = DaemonChecker(self._world)
        self._world.on_change, self._world.on_delete = checker.changed, checker.deleted
        for number in range(3):
            self._world.put("nodes", docs.node(f"n{number}", f"node-{number}", "blue"))
        owner = docs.daemonset(
            "agent", "set-1", docs.template("agent", "a"), docs.strategy(1), min_ready_s=0, limit=10, numbered=False
        )
        self._world.put("daemonsets", owner)
        for number in range(3):
            pod = docs.pod(f"agent-{number}", f"pod-{number}", "agent", f"n{number}", owner)
            since = docs.rfc3339(clock.wall_ms())
            pod["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
            self._world.put("pods", pod)
        seen = self._world.rv
        self._world.landing = View(dict.fromkeys(("pods", "nodes", "daemonsets"), seen), clock.mono_ms())

    def remove_node(self, number: int) -> None:
        """Whose turns are under way has not heard of it."""
        self._world.remove("nodes", f"n{number}")

    def delete_pod(self, number: int) -> None:
        uid = f"pod-{number}"
        assert self._world.answer_to(Write("delete", "pods", NAMESPACE, f"agent-{number}", uid=uid), "").code == 200


def test_one_too_many_are_down() -> None:
    rolling = Rolling()
    rolling.delete_pod(0)
    with pytest.raises(Violation, match="D2: agent is down on"):
        rolling.delete_pod(1)


def test_a_node_that_has_gone_is_none_to_do_without() -> None:
    rolling = Rolling()
    rolling.remove_node(0)
    rolling.delete_pod(0)
    rolling.delete_pod(1)
    with pytest.raises(Violation, match="D2: agent is down on"):
        rolling.delete_pod(2)
