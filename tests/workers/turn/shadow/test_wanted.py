"""The writes of a turn, in the form that is compared."""

from __future__ import annotations

import orjson
import pytest

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.turns import Entry
from oarlock.controllers.flavour import DEPLOYMENT
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.controllers.ownership.claim import adopt_patch, release_patch
from oarlock.workers.turn.engine.dry_run import MADE, Decision
from oarlock.workers.turn.shadow.wanted import NOTHING, REPLICASETS, Wanted, wanted
from oarlock.workers.turn.steps import Write

CLAIM = Claim("deployment", "shop/web", "n", None, [], None, "", False, 0)
OWNER = ReplicaSet("shop", "web", "owner", 1, 1, None, b"", {})


def write(verb: str, resource: str, body: object = None, *, name: str = "x", uid: str = "u") -> Write:
    raw = body if isinstance(body, bytes) else orjson.dumps(body or {})
    return Write(verb, resource, "shop", name, raw, uid)


def pod(name: str, revision: str = "") -> Write:
    labels = {"labels": {"controller-revision-hash": revision}} if revision else {}
    return write("create", "pods", {"metadata": labels}, name=name, uid="")


@pytest.mark.parametrize(
    ("writes", "entries", "found"),
    [
        ([], [], NOTHING),
        ([pod("a"), pod("b")], [], Wanted(creates={"": 2})),
        (
            [pod("a", "h"), pod("b", "h")],
            [Entry("create", "pods/a", hint="node=n1"), Entry("create", "pods/b", hint="node=n2")],
            Wanted(creates={"n1": 1, "n2": 1}, revision="h"),
        ),
        ([write("delete", "pods"), write("delete", "replicasets", uid="r")], [], Wanted(deletes=frozenset("ur"))),
        (
            [write("create", "replicasets"), write("patch", "replicasets", {"spec": {"replicas": 3}}, uid=f"{MADE}x")],
            [],
            Wanted(creates={REPLICASETS: 1}, new_size=3),
        ),
        ([write("patch", "replicasets", {"spec": {"replicas": 0}})], [], Wanted(sizes={"u": 0})),
        (
            [write("patch", "replicasets", {"metadata": {"annotations": {}}})],
            [],
            Wanted(others=("patch replicasets/x",)),
        ),
        ([write("patch", "replicasets", adopt_patch(OWNER, DEPLOYMENT, "u"))], [], Wanted(touches=frozenset("u"))),
        ([write("patch", "replicasets", release_patch("u", ["owner"]))], [], Wanted(touches=frozenset("u"))),
        ([write("patch", "pods")], [], Wanted(touches=frozenset("u"))),
        ([write("create", "controllerrevisions")], [], Wanted(others=("create controllerrevisions/x",))),
        (
            [
                write(
                    "status",
                    "deployments",
                    {
                        "metadata": {"resourceVersion": "9"},
                        "status": {"replicas": 1, "conditions": [{"type": "T", "lastUpdateTime": "now"}]},
                    },
                )
            ],
            [],
            Wanted(status='{"status":{"conditions":[{"type":"T"}],"replicas":1}}'),
        ),
        ([pod("a"), write("status", "replicasets", {"status": {"replicas": 1}})], [], Wanted(creates={"": 1})),
    ],
)
def test_what_a_turn_wants(writes: list[Write], entries: list[Entry], found: Wanted) -> None:
    assert wanted(Decision(CLAIM, writes, entries)) == found
