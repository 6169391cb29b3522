"""What becomes of owners whose events another ingestor has applied: nobody has looked at their orphans for certain."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from oarlock.broker.values.events import Ingested
from oarlock.cluster.http.frames import WatchEvent
from oarlock.controllers.registry import WATCHED
from oarlock.workers.ingest.applier import Applier
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.projection import Projector
from tests.workers.ingest.ingest_api import replicaset_json


class Scripted:
    """A watch with these events, and a broker that has some of them already."""

    epoch = 1

    def __init__(self, events: list[WatchEvent], skipped: int) -> None:
        self._events, self._skipped = events, skipped
        self.sent: list[str] = []

    def take(self, most: int) -> list[WatchEvent]:
        taken, self._events = self._events[:most], self._events[most:]
        return taken

    def pace(self, awaited: bool) -> None: ...

    def ingest(self, resource: str, after: str, to: str, events: list[Any], told: bool) -> Ingested:
        self.sent += [event.rv for event in events]
        return Ingested("OK", skipped=self._skipped)


@pytest.mark.parametrize(
    ("mark", "skipped", "doubtful"), [("1", 0, ""), ("1", 2, "ab"), ("3", 0, "ab"), ("3", 1, "abc")]
)
def test_an_owner_that_another_has_applied_is_in_doubt(mark: str, skipped: int, doubtful: str) -> None:
    """Be it below the watermark that is known here, or told by the answer."""
    events = []
    for rv, name in enumerate("abcd", 2):
        doc = replicaset_json("x", name, f"uid-{name}", labels={"app": name})  # it has what a DaemonSet needs
        doc["metadata"]["resourceVersion"] = str(rv)
        events.append(WatchEvent("ADDED", str(rv), orjson.dumps(doc)))
    owners, scripted = KnownOwners(), Scripted(events, skipped)
    applier: Any = Applier(Projector(WATCHED["daemonsets"], owners), owners)
    applier.start("1")
    applier.mark = mark
    applier.step(scripted, scripted)
    assert scripted.sent == [rv for rv in ("2", "3", "4", "5") if rv > mark]
    assert owners.doubtful == {("daemonset", f"x/{name}") for name in doubtful}
