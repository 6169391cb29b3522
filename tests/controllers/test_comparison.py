"""Whether a live object holds what was wanted of it."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.controllers.comparison import differences

CASES: dict[str, tuple[Any, Any, list[str]]] = {
    "equal": ({"a": 1}, {"a": 1}, []),
    "more than was wanted": ({"a": 1}, {"a": 1, "b": 2}, []),
    "another value": ({"a": 1}, {"a": 2}, [".a"]),
    "missing": ({"a": 1}, {}, [".a"]),
    "deeper": ({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1, "b": 3}}, [".spec.b"]),
    "null goes without saying": ({"a": None}, {}, []),
    "null over a value is no wish": ({"a": None}, {"a": 1}, []),
    "an empty object goes without saying": ({"a": {}}, {}, []),
    "an object of nothing but nulls": ({"a": {"b": None}}, {}, []),
    "an empty list goes without saying": ({"a": []}, {}, []),
    "an empty list over a full one": ({"a": []}, {"a": ["x"]}, [".a"]),
    "an object where a text is": ({"a": {"b": 1}}, {"a": "x"}, [".a"]),
    "a list where a text is": ({"a": ["x"]}, {"a": "x"}, [".a"]),
    "whole numbers and floats": ({"a": 1.0}, {"a": 1}, []),
    "true is not 1": ({"a": True}, {"a": 1}, [".a"]),
    "a text is no number": ({"a": "1"}, {"a": 1}, [".a"]),
    "lists of scalars as a whole": ({"a": ["x", "y"]}, {"a": ["y", "x"]}, [".a[0]", ".a[1]"]),
    "a longer list of scalars": ({"a": ["x"]}, {"a": ["x", "y"]}, [".a"]),
    "finalizers are a set": (
        {"metadata": {"finalizers": ["x"]}},
        {"metadata": {"finalizers": ["y", "x"]}},
        [],
    ),
    "a finalizer that is missing": (
        {"metadata": {"finalizers": ["x"]}},
        {"metadata": {"finalizers": ["y"]}},
        [".metadata.finalizers"],
    ),
    "containers by name, and one beside them": (
        {"c": [{"name": "a", "image": "1"}]},
        {"c": [{"name": "proxy"}, {"name": "a", "image": "1", "pullPolicy": "Always"}]},
        [],
    ),
    "another image": (
        {"c": [{"name": "a", "image": "1"}]},
        {"c": [{"name": "a", "image": "2"}]},
        [".c[name=a].image"],
    ),
    "a container that is missing": ({"c": [{"name": "a"}]}, {"c": [{"name": "b"}]}, [".c[name=a]"]),
    "ports by number": (
        {"ports": [{"port": 80}]},
        {"ports": [{"port": 443, "protocol": "TCP"}, {"port": 80, "protocol": "TCP", "nodePort": 30000}]},
        [],
    ),
    "one port twice is compared by position": (
        {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]},
        {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "TCP"}]},
        [".ports[1].protocol"],
    ),
    "owner references by UID": (
        {"refs": [{"uid": "1", "controller": True}]},
        {"refs": [{"uid": "2"}, {"uid": "1", "controller": True}]},
        [],
    ),
    "objects without a key by position": ({"t": [{"x": 1}]}, {"t": [{"x": 1, "y": 2}]}, []),
    "and as many of them": ({"t": [{"x": 1}]}, {"t": [{"x": 1}, {"x": 2}]}, [".t"]),
}


@pytest.mark.parametrize("case", CASES)
def test_differences(case: str) -> None:
    wanted, live, paths = CASES[case]
    assert [path for path, _ in differences(wanted, live)] == paths


def test_what_is_there_is_told() -> None:
    assert differences({"a": 1, "b": 2}, {"a": {"x": [1]}}) == ((".a", '{"x":[1]}'), (".b", ""))
