"""Ingestors gone deaf: one whose connections stay open and bring nothing; and both, of one resource.

A client cannot tell such a watch from a quiet one before it is older than the server was asked to let it be: 75 s.
"""

from __future__ import annotations

from tests.planted.fault import Fault
from tests.planted.fleet import Fleet

FOR_EVER_S = 3_600
SECTION = "Changes are not seen: a deaf ingestor"


def plant_one(fleet: Fleet) -> list[str]:
    """What the API server answers the second ingestor is kept back, on open connections."""
    fleet.network("no-answers")
    return [rf"ingestor-\S+-{fleet.second_ingestor}-\w+( is deaf: .*|\nat_ms=\d+ deaf=\S*)\bnodes\b"]


def heal_one(fleet: Fleet) -> None:
    fleet.network("pass")


def plant_all(fleet: Fleet) -> list[str]:
    """The API server says nothing about pods to any ingestor."""
    silent = {"action": "stallWatch", "resources": ["pods"], "userAgent": "(ingestor)", "durationS": FOR_EVER_S}
    fleet.api.faults(fleet.seed, [silent])
    return [r"what changes of pods is not seen|deaf=pods\b"]


def heal_all(fleet: Fleet) -> None:
    fleet.api.faults(fleet.seed, [])


FAULTS = (
    Fault("an ingestor gone deaf, of two", SECTION, (r"\bis deaf: |\bdeaf=",), plant_one, heal_one),
    Fault("nobody hears a resource", SECTION, (r"\bnobody hears it\b|\bdeaf=pods",), plant_all, heal_all),
)
