"""Who fills the queue, a line a case."""

from __future__ import annotations

import pytest

from oarlock.cli.watch.fleet_look import NamespaceLook
from oarlock.cli.watch.namespaces import Sample, namespaces_of


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([], [], id="no queue"),
        pytest.param([Sample("rs", 0, [])], [], id="all idle"),
        pytest.param(
            [Sample("rs", 3, ["b/x", "a/x", "b/y"])],
            [("b", 2, 2 / 3, 2, "rs"), ("a", 1, 1 / 3, 1, "rs")],
            id="all keys were seen",
        ),
        pytest.param(
            [Sample("rs", 1_000, ["a/x", "a/y", "a/z", "b/x"])],
            [("a", 750, 0.75, 3, "rs"), ("b", 250, 0.25, 1, "rs")],
            id="a sample stands for all",
        ),
        pytest.param(
            [Sample("rs", 100, ["a/x"]), Sample("ds", 300, ["a/x", "b/x"])],
            [("a", 250, 250 / 400, 2, "ds"), ("b", 150, 150 / 400, 1, "ds")],
            id="each queue by its own share",
        ),
        pytest.param([Sample("nodes", 2, ["n1", "n2"])], [("", 2, 1.0, 2, "nodes")], id="nodes have no namespace"),
        pytest.param([Sample("rs", 1, ["a/x", "a/y"])], [("a", 2, 1.0, 2, "rs")], id="some went while it was read"),
        pytest.param([Sample("rs", 2, ["b/x", "a/x"])], [("a", 1, 0.5, 1, "rs"), ("b", 1, 0.5, 1, "rs")], id="alike"),
    ],
)
def test_namespaces(samples: list[Sample], expected: list[tuple[str, int, float, int, str]]) -> None:
    assert namespaces_of(samples) == tuple(NamespaceLook(*each) for each in expected)
