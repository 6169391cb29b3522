"""The printer columns of a type as cells of `oarlock get`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from oarlock.controllers.objects.whole import Whole
from oarlock.sdk.types.columns import cells

META: dict[str, Any] = {"name": "web", "annotations": {"example.com/owner": "ann"}}
BODY = {
    "metadata": META,
    "spec": {"image": "nginx", "public": False, "ports": [{"name": "a", "at": 1}, {"name": "b"}], "empty": []},
    "status": {"ready": 0, "parts": {"x": 1}},
}
CELLS: list[tuple[str, object]] = [
    ("spec.image", "nginx"),
    ("spec.public", False),
    ("status.ready", 0),
    ("status.parts", '{"x":1}'),
    ("spec.ports.name", ["a", "b"]),
    ("spec.ports[].at", [1]),
    (".spec.ports[1].name", "b"),
    ("spec.ports[2].name", None),
    ("spec.empty", []),
    ("spec.none", None),
    ("spec.image.none", None),
    ("metadata.annotations[example.com/owner]", "ann"),
    ("metadata.annotations['example.com/owner']", "ann"),
]


@pytest.mark.parametrize(("path", "told"), CELLS)
def test_a_cell(path: str, told: object) -> None:
    (cell,) = cells({"It": path}, ()).values()
    assert cell(Whole("shop", "web", "u", body=msgspec.json.encode(BODY))) == told


HEADINGS: list[tuple[tuple[str, ...], list[str]]] = [
    ((), ["IMAGE", "PORTS", "OWNER"]),
    (("spec.image",), ["IMAGE"]),
    (("spec.ports.name",), ["PORTS"]),
    (("spec", "metadata.annotations"), ["IMAGE", "PORTS", "OWNER"]),
    (("status",), []),
]


@pytest.mark.parametrize(("fields", "headings"), HEADINGS)
def test_columns_that_cannot_be_read_from_the_cache_are_left_out(fields: tuple[str, ...], headings: list[str]) -> None:
    columns = {
        "Image": "spec.image",
        "Ports": "spec.ports[0].name",
        "Owner": "metadata.annotations[example.com/owner]",
        "Born": ".metadata.creationTimestamp",
        "Filtered": '.spec.ports[?(@.name=="a")].at',
    }
    assert list(cells(columns, fields)) == headings
