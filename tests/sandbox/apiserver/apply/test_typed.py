"""Objects by the types of their fields: upstream's well-known cases (structured-merge-diff, typed/ and merge/)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.sandbox.apiserver.apply.field_sets import FieldSet, paths_of
from oarlock.sandbox.apiserver.apply.field_types import DEDUCED, FieldType, type_of_kind, type_of_schema
from oarlock.sandbox.apiserver.apply.typed import NotTyped, compare, fields_of, merge, without

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "rows": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                        },
                    },
                },
                "names": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic"},
                "plain": {"type": "array", "items": {"type": "string"}},
                "map": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "x-kubernetes-map-type": "atomic"},
                },
            },
        }
    },
}
TYPE = type_of_schema(SCHEMA)


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def shown(fields: FieldSet) -> list[str]:
    return sorted("/".join(path[1:]) for path in paths_of(fields) if len(path) > 1)


ROW = 'f:rows/k:{"port":1,"protocol":"TCP"}'


@pytest.mark.parametrize(
    ("live", "applied", "merged", "fields"),
    [
        (spec(a=1), spec(b=2), spec(a=1, b=2), ["f:b"]),
        (
            spec(names=["b", "a"]),
            spec(names=["c", "a"]),
            spec(names=["b", "a", "c"]),
            ['f:names/v:"a"', 'f:names/v:"c"'],
        ),
        (spec(plain=["a"]), spec(plain=["b"]), spec(plain=["b"]), ["f:plain"]),
        (spec(whole={"a": 1}), spec(whole={"b": 1}), spec(whole={"b": 1}), ["f:whole"]),
        (
            spec(rows=[{"port": 1, "protocol": "TCP", "x": 1}, {"port": 2, "protocol": "TCP"}]),
            spec(rows=[{"port": 1, "y": 2}]),
            spec(rows=[{"port": 1, "protocol": "TCP", "x": 1, "y": 2}, {"port": 2, "protocol": "TCP"}]),
            [ROW, f"{ROW}/f:port", f"{ROW}/f:y"],
        ),
        (spec(map={"a": {"x": 1}}), spec(map={"a": {"y": 1}}), spec(map={"a": {"y": 1}}), ["f:map/f:a"]),
        (spec(), spec(rows=[], map={}), spec(rows=[], map={}), ["f:map", "f:rows"]),
    ],
)
def test_lists_and_maps_merge_by_their_schema(
    live: dict[str, Any], applied: dict[str, Any], merged: dict[str, Any], fields: list[str]
) -> None:
    assert merge(live, applied, TYPE) == merged
    assert shown(fields_of(applied, TYPE)) == fields


@pytest.mark.parametrize(
    ("kind", "path", "one"),
    [
        ("Pod", "spec containers", {"name": "a"}),
        ("Deployment", "spec template spec volumes", {"name": "a"}),
        ("Service", "spec ports", {"port": 80}),
        ("Pod", "metadata ownerReferences", {"uid": "u"}),
        ("Node", "status conditions", {"type": "Ready"}),
        ("Widget", "status conditions", {"type": "Ready"}),
        ("Pod", "metadata finalizers", "a/b"),
    ],
)
def test_lists_of_built_in_kinds_merge(kind: str, path: str, one: Any) -> None:
    assert _type_at(kind, path).keys or _type_at(kind, path).is_set
    other = "c/d" if isinstance(one, str) else {key: f"{value}2" for key, value in one.items()}
    assert merge([one], [other], _type_at(kind, path)) == [one, other]


@pytest.mark.parametrize("path", ["spec tolerations", "spec nodeSelector", "spec containers args"])
def test_what_pods_keep_as_a_whole(path: str) -> None:
    type_ = _type_at("Pod", path)
    assert merge(["a"], ["b"], type_) == ["b"]


def _type_at(kind: str, path: str) -> FieldType:
    type_ = type_of_kind(kind)
    for name in path.split():
        type_ = (type_.elements if type_.keys and type_.elements else type_).under(name)
    return type_


def test_an_element_without_its_key_is_refused() -> None:
    with pytest.raises(NotTyped, match="omits key field 'name'"):
        fields_of({"spec": {"containers": [{"image": "a"}]}}, type_of_kind("Pod"))


DOCUMENTS = st.recursive(
    st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), DOCUMENTS, max_size=3)


@given(OBJECTS, OBJECTS)
def test_a_comparison_is_what_a_merge_brings(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = compare(old, merge(old, new, DEDUCED), DEDUCED)
    assert not found.removed or any(type(old[key]) is not type(new.get(key)) for key in old) or found.modified
    assert compare(new, new, DEDUCED) == compare({}, {}, DEDUCED)


@given(OBJECTS)
def test_an_object_without_all_its_fields_has_no_leaf_left(obj: dict[str, Any]) -> None:
    left = without(obj, fields_of(obj, DEDUCED), DEDUCED)
    leaves = list(paths_of(fields_of(left, DEDUCED))) if left else []
    kept = set(paths_of(fields_of(obj, DEDUCED)))
    assert not kept & set(leaves)
