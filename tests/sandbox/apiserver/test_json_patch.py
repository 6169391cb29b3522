"""JSON patch: every operation, every refusal, and that nothing handed in is changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.patches import JSON_PATCH, apply, apply_json_patch

DOC: dict[str, Any] = {
    "objects": [{"x": 1}, {"x": 2}],
    "a": 1,
    "list": [1, 2, 3],
    "deep": {"x": {"y": "z"}},
    "a/b": {"m~n": 8},
    "": 0,
}


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        pytest.param([op("add", "/b", value=2)], {"b": 2}, id="add a field"),
        pytest.param([op("add", "/a", value=2)], {"a": 2}, id="add replaces a field"),
        pytest.param([op("add", "/list/1", value=9)], {"list": [1, 9, 2, 3]}, id="add inserts"),
        pytest.param([op("add", "/list/3", value=9)], {"list": [1, 2, 3, 9]}, id="add at the end by index"),
        pytest.param([op("add", "/list/-", value=9)], {"list": [1, 2, 3, 9]}, id="add appends"),
        pytest.param([op("add", "/b", value=None)], {"b": None}, id="add null"),
        pytest.param([op("replace", "/deep/x/y", value=[])], {"deep": {"x": {"y": []}}}, id="replace deep"),
        pytest.param([op("replace", "/list/0", value=7)], {"list": [7, 2, 3]}, id="replace an element"),
        pytest.param([op("remove", "/list/0")], {"list": [2, 3]}, id="remove an element"),
        pytest.param([op("remove", "/deep/x/y")], {"deep": {"x": {}}}, id="remove deep"),
        pytest.param([op("replace", "/a~1b/m~0n", value=9)], {"a/b": {"m~n": 9}}, id="escapes"),
        pytest.param(
            [op("replace", "/objects/1/x", value=3)], {"objects": [{"x": 1}, {"x": 3}]}, id="replace in an element"
        ),
        pytest.param([op("add", "", value=DOC | {"b": 1})], {"b": 1}, id="add the whole document"),
        pytest.param([op("test", "/none/x", value=None)], {}, id="test null below what is absent"),
        pytest.param([op("test", "/a", value=1)] * 10_000, {}, id="as many operations as allowed"),
        pytest.param([op("replace", "/", value=5)], {"": 5}, id="the empty key"),
        pytest.param([op("test", "/a", value=1)], {}, id="test passes"),
        pytest.param([op("test", "/a", value=1.0)], {}, id="numbers compare by value"),
        pytest.param([op("test", "/deep", value={"x": {"y": "z"}})], {}, id="test an object"),
        pytest.param([op("test", "/none", value=None)], {}, id="test null for absent"),
        pytest.param([op("copy", "/b", **{"from": "/deep/x"})], {"b": {"y": "z"}}, id="copy"),
        pytest.param([op("move", "/deep/w", **{"from": "/deep/x"})], {"deep": {"w": {"y": "z"}}}, id="move"),
        pytest.param([op("move", "/list/0", **{"from": "/list/2"})], {"list": [3, 1, 2]}, id="move element"),
        pytest.param([op("move", "/a", **{"from": "/a"})], {}, id="move onto itself"),
        pytest.param(
            [op("add", "/n", value={}), op("add", "/n/m", value=1)], {"n": {"m": 1}}, id="one after the other"
        ),
    ],
)
def test_applies(patch: list[Any], changed: dict[str, Any]) -> None:
    before = copy.deepcopy(DOC)
    assert apply(JSON_PATCH, "Pod", DOC, patch) == DOC | changed
    assert before == DOC, "the document handed in was changed"


def test_remove_and_move_take_the_field_away() -> None:
    assert "a" not in apply_json_patch(DOC, [op("remove", "/a")])
    assert "a" not in apply_json_patch(DOC, [op("move", "/b", **{"from": "/a"})])


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        pytest.param({"op": "add"}, 400, id="not a list"),
        pytest.param({}, 400, id="an object without operations"),
        pytest.param(["add"], 400, id="not an operation"),
        pytest.param([op("test", "/list", value=[True, 2, 3])], 422, id="true is not 1 in a list"),
        pytest.param([op("test", "/deep", value={"x": {"y": "w"}})], 422, id="another value deep inside"),
        pytest.param([op("test", "/deep", value={"x": {}})], 422, id="a field less deep inside"),
        pytest.param([op("frob", "/a")], 400, id="unknown operation"),
        pytest.param([{"op": "remove"}], 400, id="no path"),
        pytest.param([op("add", "/a")], 400, id="no value"),
        pytest.param([op("copy", "/a")], 400, id="no from"),
        pytest.param([op("remove", "a")], 400, id="pointer without slash"),
        pytest.param([op("remove", "/a~2")], 400, id="bad escape"),
        pytest.param([op("remove", "/none")], 422, id="remove what is not there"),
        pytest.param([op("remove", "")], 422, id="remove everything"),
        pytest.param([op("replace", "/none", value=1)], 422, id="replace what is not there"),
        pytest.param([op("add", "/none/x", value=1)], 422, id="add below what is not there"),
        pytest.param([op("add", "/a/x", value=1)], 422, id="add below a number"),
        pytest.param([op("add", "/list/4", value=1)], 422, id="add past the end"),
        pytest.param([op("add", "/list/01", value=1)], 422, id="leading zero"),
        pytest.param([op("add", "/list/x", value=1)], 422, id="index is no number"),
        pytest.param([op("replace", "/list/3", value=1)], 422, id="replace past the end"),
        pytest.param([op("remove", "/list/-")], 422, id="remove after the end"),
        pytest.param([op("test", "/a", value=2)], 422, id="test fails"),
        pytest.param([op("test", "/a", value=True)], 422, id="true is not 1"),
        pytest.param([op("test", "/list", value=[1, 2])], 422, id="test a shorter list"),
        pytest.param([op("copy", "/b", **{"from": "/none"})], 422, id="copy what is not there"),
        pytest.param([op("move", "/deep/x/in", **{"from": "/deep"})], 422, id="move into its own child"),
        pytest.param([op("add", "/b", value=1), op("test", "/b", value=2)], 422, id="test sees earlier steps"),
        pytest.param([op("replace", "", value=3)], 422, id="the result is no object"),
        pytest.param([op("add", "/b", value=1)] * 10_001, 413, id="too many operations"),
    ],
)
def test_refuses(patch: Any, code: int) -> None:
    before = copy.deepcopy(DOC)
    with pytest.raises(ApiError) as refusal:
        apply(JSON_PATCH, "Pod", DOC, patch)
    assert refusal.value.code == code
    assert before == DOC


def test_untouched_parts_are_shared() -> None:
    patched = apply_json_patch(DOC, [op("replace", "/deep/x/y", value="new")])
    assert patched["list"] is DOC["list"]
    assert patched["deep"] is not DOC["deep"]


_keys = st.sampled_from(["a", "b", "c~", "d/e"])
_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("xy", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)


@given(document=st.dictionaries(_keys, _values, max_size=4), key=_keys, value=_values)
def test_add_then_remove_is_nothing(document: dict[str, Any], key: str, value: Any) -> None:
    document.pop(key, None)
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    steps = [op("add", pointer, value=value), op("test", pointer, value=value), op("remove", pointer)]
    before = copy.deepcopy(document)
    assert apply_json_patch(document, steps) == before == document


@given(items=st.lists(_values, min_size=1, max_size=5), data=st.data())
def test_move_in_a_list_is_pop_and_insert(items: list[Any], data: st.DataObject) -> None:
    source = data.draw(st.integers(0, len(items) - 1))
    target = data.draw(st.integers(0, len(items) - 1))
    expected = list(items)
    expected.insert(target, expected.pop(source))
    moved = apply_json_patch({"l": items}, [op("move", f"/l/{target}", **{"from": f"/l/{source}"})])
    assert moved == {"l": expected}
