"""Merge patch: the table of RFC 7386's appendix A, and its properties."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.patches import MERGE_PATCH, apply, apply_merge_patch


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_rfc_7386_appendix_a(document: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy(document)
    assert apply_merge_patch(document, patch) == result
    assert document == before


def test_over_http_a_patch_is_an_object() -> None:
    with pytest.raises(ApiError) as refusal:
        apply(MERGE_PATCH + "; charset=utf-8", "Pod", {"a": 1}, ["c"])
    assert refusal.value.code == 400


def test_server_side_apply_is_refused_clearly() -> None:
    with pytest.raises(ApiError) as refusal:
        apply("application/apply-patch+yaml", "Pod", {}, {})
    assert refusal.value.code == 415
    assert MERGE_PATCH in refusal.value.message


_json = st.recursive(
    st.booleans() | st.integers(0, 3) | st.text("xy", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("abc", max_size=1), inner, max_size=3),
    max_leaves=10,
)
_objects = st.dictionaries(st.text("abc", max_size=1), _json, max_size=4)


def diff(old: Any, new: Any) -> Any:
    """The merge patch that leads from `old` to `new`; exists for every pair of objects without nulls."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key in old and isinstance(value, dict) and isinstance(old[key], dict):
            patch[key] = diff(old[key], value)
        else:
            patch[key] = value
    return patch


@given(old=_objects, new=_objects)
def test_a_diff_leads_to_the_new_document(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy(old)
    assert apply_merge_patch(old, diff(old, new)) == new
    assert old == before


@given(document=_objects, patch=_objects)
def test_applying_twice_is_applying_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = apply_merge_patch(document, patch)
    assert apply_merge_patch(once, patch) == once
