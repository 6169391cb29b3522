"""Failed pods of a node are deleted at growing intervals, and their names rest, whoever deletes them and whoever dies
meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import Entry
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.objects.codec import decode_daemonset
from oarlock.controllers.objects.model import Pod
from tests.simulation.checker import Violation
from tests.simulation.daemon_world import DaemonWorld

FIRST_MS, MOST_MS = 1_000, 900_000
REST_MS = 2_500


class Decided(NamedTuple):
    """When a delete may have been decided, at the earliest and at the latest, and the generation then observed."""

    from_ms: int
    until_ms: int
    generation: int


class Failures:
    """What was deleted of each set on each node, within an epoch and a generation."""

    def __init__(self, world: DaemonWorld) -> None:
        self._world = world
        self._claims: dict[tuple[str, str], tuple[int, int]] = {}
        self._decided: dict[str, Decided] = {}
        self._last: dict[tuple[str, str], tuple[Decided, int]] = {}

    def viewed(self, batch: Batch) -> None:
        """Keys were claimed."""
        for claim in batch.claims:
            if claim.queue == "daemonset" and claim.owner is not None:
                observed = decode_daemonset(claim.owner.blob).status.observed_generation
                self._claims[claim.key, claim.nonce] = self._world.clock_ms(), observed

    def announced(self, claim: Claim, entry: Entry) -> None:
        """A delete was entered in a record. One that is sent again for want of an answer was decided when it was sent
        first: its back-off goes on.
        """
        since = self._claims.get((claim.key, claim.nonce))
        if since is not None:
            before = self._decided.get(entry.uid)
            from_ms = before.from_ms if before is not None else since[0]
            self._decided[entry.uid] = Decided(from_ms, self._world.clock_ms(), since[1])

    def new_epoch(self) -> None:
        """What was kept in the record is lost."""
        self._claims.clear()
        self._decided.clear()
        self._last.clear()

    def deleted(self, pod: Pod, uid: str) -> None:
        """A pod of ours is being deleted. One of an older revision is a matter of the rolling update."""
        decided = self._decided.get(pod.uid)
        if pod.phase != "Failed" or pod.deleting_ms or decided is None or not self._is_current(pod, uid):
            return
        last, delay_ms = self._last.get((uid, pod.target_node), (None, 0))
        if last is None or last.generation != decided.generation:
            self._last[uid, pod.target_node] = decided, FIRST_MS
            return
        if decided.from_ms < last.from_ms:
            return  # it was decided before that one, and has landed after it
        self._world.count("failed again")
        if decided.until_ms - last.from_ms < delay_ms:
            passed_ms = decided.until_ms - last.from_ms
            raise Violation(f"back-off: {pod.name} was deleted {passed_ms} ms after the last, {delay_ms} is due")
        self._last[uid, pod.target_node] = decided, min(2 * delay_ms, MOST_MS)

    def _is_current(self, pod: Pod, uid: str) -> bool:
        owner = next((s.obj for s in self._world.tables["daemonsets"].values() if s.obj.uid == uid), None)
        revisions = [stored.obj for stored in self._world.tables["controllerrevisions"].values()]
        hashes = {each.hash for each in revisions if owner is not None and each.digest == owner.template_digest}
        return pod.labels.get(HASH_LABEL) in hashes


class Rests:
    """The name of a failed pod that we deleted is not borne again at once, within an epoch.

    Of deletes only those count that this epoch announced: one of an earlier epoch may land in it, but what makes the
    name rest was announced with it, and is lost. Of creates only those count whose turn was begun after the delete: an
    earlier one may land whenever it likes.
    """

    def __init__(self, world: DaemonWorld) -> None:
        self._world = world
        self._deleted: dict[str, int] = {}
        self._gone: dict[str, tuple[int, int]] = {}

    def deleted(self, pod: Pod) -> None:
        """A pod is being deleted by us, as was announced in this epoch."""
        if pod.phase == "Failed" and not pod.deleting_ms:
            self._deleted[pod.uid] = self._world.clock_ms()

    def gone(self, pod: Pod) -> None:
        """A pod has gone, by whomever."""
        if pod.uid in self._deleted:
            self._gone[pod.name] = self._deleted.pop(pod.uid), self._world.clock_ms()

    def borne(self, pod: Pod) -> None:
        """One of ours was created."""
        deleted_ms, gone_ms = self._gone.pop(pod.name, (0, 0))
        if not gone_ms or self._world.landing.at_ms <= deleted_ms:
            return
        self._world.count("borne after a rest")
        if self._world.clock_ms() - gone_ms < REST_MS:
            raise Violation(f"rest: {pod.name} is borne again {self._world.clock_ms() - gone_ms} ms after it went")

    def new_epoch(self) -> None:
        """What was kept in the record is lost."""
        self._deleted.clear()
        self._gone.clear()
