"""JSON paths: what they find, and which of them cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.sandbox.apiserver.custom import json_path

OBJ: dict[str, Any] = {
    "spec": {"size": 3, "hosts": [{"name": "a", "w": 1}, {"name": "b", "w": 2}], "on": True},
    "metadata": {"labels": {"a.b/c": "x"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other"}]},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.size", [3]),
        ("{.spec.size}", [3]),
        (".spec.absent", []),
        (".spec.size.more", []),
        (".spec.hosts[0].name", ["a"]),
        (".spec.hosts[-1].name", ["b"]),
        (".spec.hosts[7].name", []),
        (".spec.hosts[*].name", ["a", "b"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Absent')].status", []),
        (".status.conditions[?(@.status)].type", ["Ready"]),
        (".spec.hosts[?(@.w>1)].name", ["b"]),
        (".spec.hosts[?(@.w != 1)].name", ["b"]),
        (".spec.hosts[?(@.name < 1)].name", []),
        (r".metadata.labels.a\.b/c", ["x"]),
        (".metadata.labels['a.b/c']", ["x"]),
        ("['spec']['size']", [3]),
        (".", [OBJ]),
    ],
)
def test_found(path: str, values: list[Any]) -> None:
    assert json_path.found(path, OBJ) == values
    assert json_path.first(path, OBJ) == (values[0] if values else None)


@pytest.mark.parametrize("path", ["", "spec", "..size", ".a[", ".a[1:2]", ".a[0,1]", ".a[?(@.b==1]", ".a b["])
def test_not_read(path: str) -> None:
    with pytest.raises(json_path.BadPath):
        json_path.compiled(path)


def test_a_value_is_put_in_a_copy() -> None:
    fields = json_path.plain_fields(".spec.size")
    changed = json_path.with_value(OBJ, fields, 5)
    assert (changed["spec"]["size"], OBJ["spec"]["size"]) == (5, 3)
    assert changed["spec"]["hosts"] is OBJ["spec"]["hosts"]
    assert json_path.with_value({}, ["a", "b"], 1) == {"a": {"b": 1}}


@pytest.mark.parametrize("path", ["spec.size", ".spec[0]", ".spec..size", "."])
def test_not_plain(path: str) -> None:
    with pytest.raises(json_path.BadPath):
        json_path.plain_fields(path)
