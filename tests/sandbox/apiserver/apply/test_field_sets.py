"""Sets of paths as trees, held against sets of tuples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.sandbox.apiserver.apply.field_sets import (
    difference,
    from_paths,
    intersection,
    path_text,
    paths_of,
    union,
    with_parents,
)

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"a"}', 'v:"x"'])
PATHS = st.sets(st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple), max_size=8)


@given(PATHS)
def test_a_tree_holds_the_paths_it_was_made_of(paths: set[tuple[str, ...]]) -> None:
    assert sorted(paths_of(from_paths(paths))) == sorted(paths)


@given(PATHS, PATHS)
def test_the_operations_are_those_of_sets(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> None:
    trees = from_paths(left), from_paths(right)
    assert union(*trees) == from_paths(left | right)
    assert difference(*trees) == from_paths(left - right)
    assert intersection(*trees) == from_paths(left & right)
    assert trees == (from_paths(left), from_paths(right))


@given(PATHS)
def test_parents_are_the_fields_above(paths: set[tuple[str, ...]]) -> None:
    above = {path[:end] for path in paths for end in range(1, len(path)) if path[end - 1].startswith("f:")}
    assert with_parents(from_paths(paths)) == from_paths(paths | above)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:c", 'k:{"name":"a"}', "f:image"), '.c[name="a"].image'),
        (("f:p", 'k:{"containerPort":80,"protocol":"TCP"}'), '.p[containerPort=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"x/y"'), '.finalizers[="x/y"]'),
    ],
)
def test_paths_read_as_upstream_writes_them(path: tuple[str, ...], text: str) -> None:
    assert path_text(path) == text
