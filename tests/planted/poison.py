"""A poison key: whoever takes it up is killed, as a library that the controller calls crashes."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.planted.api import MERGE
from tests.planted.fault import Fault
from tests.planted.fleet import Fleet

OPERATOR = Path(__file__).with_name("media.py")
NAMESPACE, NAME = "shop", "holiday"
CLIPS = f"/apis/example.com/v1/namespaces/{NAMESPACE}/clips"


def prepare(fleet: Fleet) -> None:
    """An operator of a user's own, with two healthy objects."""
    fleet.start_operator(Path(shutil.copy(OPERATOR, fleet.folder)))
    fleet.until(lambda: "clips" in fleet.kinds("example.com/v1"), "the operator defines its kind")
    for name in (NAME, "birthday"):
        clip = {"apiVersion": "example.com/v1", "kind": "Clip", "metadata": {"name": name}, "spec": {"codec": "h264"}}
        fleet.api.call("POST", CLIPS, clip)
    config = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    fleet.until(lambda: len(fleet.api.call("GET", config)["items"]) == 2, "the operator works")


def plant(fleet: Fleet) -> list[str]:
    fleet.api.call("PATCH", f"{CLIPS}/{NAME}", {"spec": {"codec": "broken"}}, MERGE)
    return [rf"\b{NAMESPACE}/{NAME}\b", r"\bparked\b"]


def heal(fleet: Fleet) -> None:
    fleet.api.call("PATCH", f"{CLIPS}/{NAME}", {"spec": {"codec": "h264"}}, MERGE)
    fleet.ask(f"oarlock requeue {NAMESPACE}/{NAME} --operator media.py")


FAULT = Fault(
    "a poison key kills its workers",
    "A key kills its workers",
    (r"worker ended by SIGSEGV",),
    plant,
    heal,
    prepare,
)
