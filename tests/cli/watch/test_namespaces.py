"""Who fills the queue, a line a case."""

from __future__ import annotations

import pytest

from oarlock.broker.looks.history import Triggers
from oarlock.cli.explain.history_sentences import cause_text
from oarlock.cli.watch.fleet_look import NamespaceLook
from oarlock.cli.watch.namespaces import Sample, namespaces_of


def keys(names: list[str]) -> dict[str, Triggers | None]:
    """Of which nobody knows what queued them."""
    return dict.fromkeys(names)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([], [], id="no queue"),
        pytest.param([Sample("rs", 0, {})], [], id="all idle"),
        pytest.param(
            [Sample("rs", 3, keys(["b/x", "a/x", "b/y"]))],
            [("b", 2, 2 / 3, 2, "rs"), ("a", 1, 1 / 3, 1, "rs")],
            id="all keys were seen",
        ),
        pytest.param(
            [Sample("rs", 1_000, keys(["a/x", "a/y", "a/z", "b/x"]))],
            [("a", 750, 0.75, 3, "rs"), ("b", 250, 0.25, 1, "rs")],
            id="a sample stands for all",
        ),
        pytest.param(
            [Sample("rs", 100, keys(["a/x"])), Sample("ds", 300, keys(["a/x", "b/x"]))],
            [("a", 250, 250 / 400, 2, "ds"), ("b", 150, 150 / 400, 1, "ds")],
            id="each queue by its own share",
        ),
        pytest.param(
            [Sample("nodes", 2, keys(["n1", "n2"]))], [("", 2, 1.0, 2, "nodes")], id="nodes have no namespace"
        ),
        pytest.param(
            [Sample("rs", 1, keys(["a/x", "a/y"]))], [("a", 2, 1.0, 2, "rs")], id="some went while it was read"
        ),
        pytest.param(
            [Sample("rs", 2, keys(["b/x", "a/x"]))],
            [("a", 1, 0.5, 1, "rs"), ("b", 1, 0.5, 1, "rs")],
            id="alike",
        ),
    ],
)
def test_namespaces(samples: list[Sample], expected: list[tuple[str, int, float, int, str]]) -> None:
    assert namespaces_of(samples) == tuple(NamespaceLook(*each) for each in expected)


def test_what_queues_the_keys_of_a_namespace_counts_by_its_events() -> None:
    """An object that changes often weighs more than many that changed once."""
    changed = Triggers(40, "set pods/a/x-1", "set replicasets/a/x")
    found: dict[str, Triggers | None] = {
        "a/x": changed,
        "a/y": Triggers(1, "due", "due"),
        "a/z": Triggers(1, "due", "due"),
        "b/x": None,
    }
    a, b = namespaces_of([Sample("rs", 4, found)])
    assert a.because == (("set replicasets", 40), ("due", 2))
    assert b.because == ()
    words = ("set", "added", "observed", "status")
    told = {f"b/{word}": Triggers(2, "due", f"{word} replicasets/b/y") for word in words}
    assert namespaces_of([Sample("rs", 2, told)])[0].because == (("set replicasets", 8),)
    woken = Triggers(3, "replicaset a/x", "deployment b/web")
    assert namespaces_of([Sample("rs", 1, {"b/y": woken})])[0].because == (("deployment", 3),)
    assert [
        cause_text(kind) for kind in ("set replicasets", "del pods", "list nodes", "due", "lost", "deployment")
    ] == [
        "replicasets were written",
        "pods were deleted",
        "nodes were listed anew",
        "its time had come",
        "workers were lost in their turns",
        "turns of deployment woke them",
    ]
