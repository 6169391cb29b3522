"""Explanations of DaemonSets and nodes: each circumstance has its sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from oarlock.broker.looks.views import ExpectationsView, KeyView
from oarlock.cli.explain.daemon_sentences import Daemons, NodeSubject
from oarlock.cli.explain.sentences import Fleet, explain
from oarlock.controllers.daemonset.model import DaemonSet, DaemonSetStatus
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision
from oarlock.controllers.objects.model import OwnerRef, Pod
from oarlock.controllers.scheduling.model import Node, Placement, Taint

NOW_MS = 1_000_000
OURS = OwnerRef("apps/v1", "DaemonSet", "agent", "u", True)
STATUS = DaemonSetStatus(3, 3, 0, 3, 3, 3, 0, 2)
AGENT = DaemonSet("ns", "agent", "u", 2, None, b"{}", "new", Placement(), max_unavailable="50%", status=STATUS)
NODES = [Node(f"n{number}", f"uid-{number}", {}) for number in (1, 2, 3)]
PODS = [
    Pod(
        "ns",
        f"agent-{node.name}",
        node.name,
        phase="Running",
        ready=True,
        labels={HASH_LABEL: "h2"},
        owner_refs=(OURS,),
        uid=f"p-{node.name}",
    )
    for node in NODES
]
REVISIONS = [
    ControllerRevision("ns", f"agent-h{number}", f"r{number}", {HASH_LABEL: f"h{number}"}, (OURS,), number, digest)
    for number, digest in ((1, "old"), (2, "new"))
]
DAEMONS = Daemons(AGENT, "80", NODES, PODS, REVISIONS, NOW_MS)
KEY = KeyView("daemonset", "ns/agent", "idle", None, None, None, 0, 0, "", None, None)
FLEET = Fleet("OPEN", True, 2)
AT_REST = "All is as it should be: there is nothing to do."
TO_BE_DONE = "Nothing is planned although something differs"


def changed(obj: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(obj, **fields)


def record(**fields: str) -> ExpectationsView:
    return ExpectationsView(
        "daemonset", "ns/agent", {name.replace("_", " "): text for name, text in fields.items()}, 1000
    )


def pods(*changes: dict[str, Any]) -> dict[str, Any]:
    """The pods, the first of them changed; None leaves one out."""
    return {"pods": [changed(pod, **(changes[at] if at < len(changes) else {})) for at, pod in enumerate(PODS)]}


OLD = {"labels": {HASH_LABEL: "h1"}}


@pytest.mark.parametrize(
    ("fields", "told", "rests"),
    [
        pytest.param({}, "belongs on 3 of 3 nodes and has 3 pods in the cache (resourceVersion 80)", True, id="whole"),
        pytest.param({}, "present template is revision 2 (agent-h2) of 2 that are kept; all its pods", True, id="new"),
        pytest.param({"pods": PODS[:1]}, "No pod is there for n2, n3.", False, id="missing"),
        pytest.param({"nodes": NODES[:2]}, "Pods are on n3, where they may not stay.", False, id="a node that is gone"),
        pytest.param(
            {"nodes": [*NODES[:2], changed(NODES[2], taints=(Taint("x", "NoSchedule"),))]},
            "Pods stay on n3, where none would be made now.",
            True,
            id="tainted later",
        ),
        pytest.param(
            {"nodes": [*NODES[:2], changed(NODES[2], taints=(Taint("x", "NoExecute"),))]},
            "Pods are on n3, where they may not stay.",
            False,
            id="drained",
        ),
        pytest.param(
            pods(OLD, OLD),
            "2 of 3 pods are older and are replaced with at most 2 nodes without an available pod at a time.",
            False,
            id="rolling",
        ),
        pytest.param(
            {**pods(OLD), "obj": changed(AGENT, max_unavailable=0, max_surge=1)},
            "replaced with at most 1 nodes with a second pod at a time.",
            False,
            id="surging",
        ),
        pytest.param(
            {**pods(OLD), "obj": changed(AGENT, strategy="OnDelete")},
            "1 of 3 pods are older and stay until somebody deletes them (strategy OnDelete).",
            True,
            id="OnDelete",
        ),
        pytest.param(
            {**pods(OLD), "obj": changed(AGENT, max_unavailable="many")},
            "cannot be replaced: maxUnavailable is neither a number nor a percentage: 'many'.",
            False,
            id="unreadable limit",
        ),
        pytest.param({"revisions": REVISIONS[:1]}, "Its present template has no revision yet", False, id="no revision"),
        pytest.param(
            pods({"deleting_ms": 5}), "2 pods in the cache (resourceVersion 80), and 1 terminating", True, id="ends"
        ),
        pytest.param(
            {"obj": changed(AGENT, deleting_ms=5)},
            "It is being deleted: nothing more is done for it.",
            True,
            id="deleted",
        ),
        pytest.param({"obj": changed(AGENT, generation=3)}, "its status says 3 of 3 scheduled", False, id="unobserved"),
        pytest.param(
            {**pods({"phase": "Failed"}), "back_offs": {"n1": f"generation=2 delay_ms=4000 at_ms={NOW_MS - 1000}"}},
            "The failed pod of n1 is left alone for another 3.0s (back-off).",
            True,
            id="backing off",
        ),
        pytest.param(
            {"back_offs": {"n1": f"generation=2 delay_ms=4000 at_ms={NOW_MS - 1000}"}},
            "Should its pod on n1 fail again, that waits for another 3.0s (back-off).",
            True,
            id="after a failure",
        ),
    ],
)
def test_sentences(fields: dict[str, Any], told: str, rests: bool) -> None:
    said = explain(KEY, replace(DAEMONS, **fields), FLEET, "DaemonSet")
    assert told in " ".join(said)
    assert (AT_REST in said) is rests
    assert any(TO_BE_DONE in each for each in said) is not rests


def test_back_offs_that_are_over_are_not_told() -> None:
    over = {"n1": f"generation=2 delay_ms=4000 at_ms={NOW_MS - 4000}", "n2": f"generation=1 delay_ms=9 at_ms={NOW_MS}"}
    assert "back-off" not in " ".join(replace(DAEMONS, back_offs=over).sentences("DaemonSet"))


def test_a_record_of_back_offs_alone_is_at_rest() -> None:
    key = replace(KEY, expectations=record(owner="u", backoff_n1="generation=2 delay_ms=1 at_ms=1"))
    said = explain(key, DAEMONS, FLEET, "DaemonSet")
    assert AT_REST in said
    assert "done and not yet seen" not in " ".join(said)


@pytest.mark.parametrize(
    ("have", "belong", "may_stay", "told", "rests"),
    [
        (["ns/a"], ["ns/a"], ["ns/a"], "is to have pods of 1 DaemonSets and has pods of 1", True),
        ([], ["ns/a"], ["ns/a"], "No pod is there of ns/a; explain these with -c daemonset.", False),
        (["ns/a"], [], [], "Pods of ns/a may not stay; explain these with -c daemonset.", False),
        (["ns/a"], [], ["ns/a"], "is to have pods of 0 DaemonSets and has pods of 1", True),
    ],
)
def test_nodes(have: list[str], belong: list[str], may_stay: list[str], told: str, rests: bool) -> None:
    key = replace(KEY, queue="daemonset-node-updates", key="n1")
    said = explain(key, NodeSubject(NODES[0], "9", have, belong, may_stay), FLEET, "Node")
    assert told in " ".join(said)
    assert (AT_REST in said) is rests


def test_a_node_that_is_not_there() -> None:
    said = explain(replace(KEY, key="n9"), None, FLEET, "Node")
    assert said[0] == "No Node n9 is in the cache: it does not exist, or no ingestor has seen it yet."
