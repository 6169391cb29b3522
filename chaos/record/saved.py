"""Evidence on disk: what a campaign leaves in its directory, to be judged then or later.

::

    monitor.log      what Redis was told, filtered
    journal.jsonl    the watch history, one event a line
    up/audit.log     the API server's
    campaign.json    what was done: facts, blows, gaps, the run
    schedule.json    what was to be done
    verdict.json     what was found
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from oarlock.chaos.judge.checker import Evidence
from oarlock.chaos.judge.evidence.audit_log import read_requests
from oarlock.chaos.judge.evidence.evidence import Blow, End, Facts
from oarlock.chaos.judge.evidence.objects import PATHS
from oarlock.chaos.judge.evidence.sightings import (
    DaemonSetSeen,
    DeploymentSeen,
    NamespaceSeen,
    NodeSeen,
    OwnerSeen,
    PodSeen,
    RevisionSeen,
    Seen,
)
from oarlock.chaos.judge.evidence.trace import read_trace
from oarlock.chaos.judge.verdict import Run

MONITOR, JOURNAL, CAMPAIGN, SCHEDULE, VERDICT = (
    "monitor.log",
    "journal.jsonl",
    "campaign.json",
    "schedule.json",
    "verdict.json",
)
AUDIT = Path("up") / "audit.log"
_KINDS: dict[str, Any] = {
    "pods": PodSeen,
    "replicasets": OwnerSeen,
    "replicationcontrollers": OwnerSeen,
    "daemonsets": DaemonSetSeen,
    "deployments": DeploymentSeen,
    "controllerrevisions": RevisionSeen,
    "nodes": NodeSeen,
    "namespaces": NamespaceSeen,
}
assert set(_KINDS) == set(PATHS)
assert set(_KINDS.values()) == set(get_args(Seen))
_DECODERS = {resource: msgspec.json.Decoder(kind) for resource, kind in _KINDS.items()}


class NoEvidence(Exception):
    """The directory holds no complete campaign; one line."""


def write_notes(
    root: Path, run: Run, facts: Facts, blows: list[Blow], from_rv: int, gaps: list[str], ends: list[End]
) -> None:
    """What only the campaign knows."""
    notes = {
        "run": msgspec.to_builtins(run),
        "facts": facts._asdict(),
        "from_rv": from_rv,
        "gaps": gaps,
        "blows": [each._asdict() for each in blows],
        "ends": [each._asdict() for each in ends],
    }
    (root / CAMPAIGN).write_text(json.dumps(notes, indent=1) + "\n")


def read_saved(root: Path) -> tuple[Run, Evidence]:
    """Read what a campaign left. Raises NoEvidence."""
    try:
        notes = json.loads((root / CAMPAIGN).read_text())
        with (root / MONITOR).open(encoding="latin-1") as lines:
            trace = list(read_trace(lines))
        with (root / AUDIT).open("rb") as log:
            requests = list(read_requests(log, notes["facts"].get("second_timeout_ms", 0)))
        history = list(_history(root / JOURNAL))
    except OSError as error:
        raise NoEvidence(f"{root}: no complete campaign ({error.strerror}: {error.filename})") from None
    blows = [Blow(**{**each, "holders": tuple(each["holders"])}) for each in notes["blows"]]
    run = msgspec.convert(notes["run"], Run)
    ends = [End(**each) for each in notes["ends"]]
    facts = Facts(**notes["facts"])
    return run, Evidence(trace, requests, history, blows, facts, notes["from_rv"], notes["gaps"], ends)


def _history(path: Path) -> Iterator[Seen]:
    decode = msgspec.json.Decoder(tuple[str, msgspec.Raw]).decode
    with path.open("rb") as lines:
        for line in lines:
            resource, fields = decode(line)
            seen: Seen = _DECODERS[resource].decode(fields)
            yield seen
