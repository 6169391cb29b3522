"""Sets become lists in the same order in each process: else a child or a status would be written by each anew."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import oarlock
from oarlock.controllers.objects.whole import reader
from oarlock.controllers.wanted import as_wanted, wanted_child
from oarlock.sdk.objects import to_json

ONE, OTHER = {0, 8}, {8, 0}
"""Two that are equal, and tell their members in another order, as the sets of two processes do."""


def test_the_two_are_what_they_are_said_to_be() -> None:
    assert (ONE == OTHER, list(ONE) == list(OTHER)) == (True, False)


class Part(oarlock.Struct):
    ports: set[int]


@oarlock.resource("example.com/v1")
class Site(oarlock.Object):
    spec: Part


class Size(enum.Enum):
    """Its members have no order of their own."""

    LARGE, MEDIUM, SMALL, TINY, WIDE = "large", "medium", "small", "tiny", "wide"


def of_pydantic(ports: set[int]) -> Any:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model(
        "Model",
        ports=(set[int], pydantic.Field(serialization_alias="thePorts")),
        parts=(list[Any], []),
        by_name=(dict[str, Any], {}),
        none=(int | None, None),
    )
    root = pydantic.RootModel[set[int]](ports)
    return model(ports=ports, parts=[model(ports=ports), root], by_name={"a": model(ports=ports), "b": ports})


GIVEN: dict[str, Callable[[set[int]], Any]] = {
    "a set": lambda ports: ports,
    "of a dict": lambda ports: {"b": ports, "a": [frozenset(ports)]},
    "of a Struct": lambda ports: Part(ports=ports),
    "of an Object": lambda ports: Site(metadata=oarlock.Meta(name="a"), spec=Part(ports=ports)),
    "of a pydantic model": of_pydantic,
    "of values without an order": lambda ports: {"all": {None, *ports, "a"}, "part": Part(ports=ports)},
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=list(GIVEN))
def test_what_is_equal_becomes_the_same_json(given: Callable[[set[int]], Any]) -> None:
    assert msgspec.json.encode(to_json(given(ONE))) == msgspec.json.encode(to_json(given(OTHER)))


def test_the_members_of_an_enum() -> None:
    names = ["large", "medium", "small", "tiny", "wide"]
    assert to_json({"sizes": set(Size), "one": Size.TINY}) == {"sizes": names, "one": "tiny"}


@dataclasses.dataclass(frozen=True, slots=True)
class Sizes:
    all: frozenset[Size]


def test_the_members_of_an_enum_in_a_dataclass() -> None:
    names = ["large", "medium", "small", "tiny", "wide"]
    given = Sizes(frozenset(Size))
    assert to_json({"a": [given]}) == {"a": [{"all": names}]}
    assert given == Sizes(frozenset(Size)), "it is not changed"


def child(ports: set[int]) -> Any:
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"ports": ports}}
    owner: dict[str, object] = {"apiVersion": "example.com/v1", "kind": "Site", "name": "b", "uid": "u"}
    return wanted_child("deployments.apps", obj, namespace="shop", owner_reference=owner, controller="site")


def test_a_child_that_one_process_has_applied_is_as_wanted_for_another() -> None:
    applied = msgspec.json.decode(child(ONE).body)
    applied["metadata"] |= {"uid": "u-1", "resourceVersion": "1"}
    _, live = reader("apps/v1", "Deployment")(msgspec.json.encode(applied))
    assert as_wanted(child(OTHER), live)


class Word(str):
    """As a YAML library has it."""


def test_texts_and_numbers_of_classes_of_their_own_are_plain_ones() -> None:
    told = to_json({"a": Word("x"), Word("b"): 1})
    assert (told, {type(each) for each in told.values()}) == ({"a": "x", "b": 1}, {str, int})
