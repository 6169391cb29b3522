"""Projections of objects by paths."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.controllers.objects.field_paths import IDENTITY, projected, steps, tree

OBJ: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "a", "uid": "u", "labels": {"x": "y"}, "annotations": {"a.b/c": "1", "d": "2"}},
    "spec": {"containers": [{"name": "m", "image": "i"}, {"name": "n"}], "node": "k", "none": None},
    "status": {"phase": "Running"},
}
TURNED = [{"image": "i", "name": "m"}, {"name": "n"}]


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        (["status.phase"], {"status": {"phase": "Running"}}),
        (["status"], {"status": {"phase": "Running"}}),
        (["status.phase.x"], {"status": {"phase": "Running"}}),
        (["spec.node", "spec.none"], {"spec": {"node": "k", "none": None}}),
        (["spec", "spec.node"], {"spec": OBJ["spec"]}),
        (["spec.node", "spec"], {"spec": OBJ["spec"]}),
        (["spec.containers.image"], {"spec": {"containers": [{"image": "i"}, {}]}}),
        (["spec.containers[*].image", "spec.containers[].name"], {"spec": {"containers": TURNED}}),
        (["metadata.annotations[a.b/c]"], {"metadata": {"annotations": {"a.b/c": "1"}}}),
        (["spec.absent", "nothing"], {"spec": {}}),
        (IDENTITY, {"kind": "Pod", "metadata": {"name": "a", "uid": "u", "labels": {"x": "y"}}}),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_kept(paths: list[str], kept: dict[str, Any]) -> None:
    before = repr(OBJ)
    assert projected(OBJ, tree(paths)) == kept
    assert repr(OBJ) == before


def test_all_of_it() -> None:
    assert projected(OBJ, None) is OBJ


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("spec", ("spec",)),
        ("spec.a-b.c_d", ("spec", "a-b", "c_d")),
        ("a[b.c/d].e", ("a", "b.c/d", "e")),
        ("a[].b[*].c", ("a", "b", "c")),
    ],
)
def test_steps(path: str, found: tuple[str, ...]) -> None:
    assert steps(path) == found


@pytest.mark.parametrize("path", ["", ".", ".spec", "spec..a", "spec.", "a b", "spec.a/b", "[a]", "spec[", "spec[a"])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match="is no path to a field"):
        steps(path)
