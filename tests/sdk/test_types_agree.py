"""The type and the schema of its definition agree: on values that the type makes, and on values that are broken."""

from __future__ import annotations

import copy
import datetime
import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from oarlock.sandbox.apiserver.custom.defaulting import defaulted
from oarlock.sandbox.apiserver.custom.pruning import pruned
from oarlock.sandbox.apiserver.custom.schema_errors import SchemaCheck
from oarlock.sdk.objects import Meta
from oarlock.sdk.types.crd import schema_of
from oarlock.sdk.types.typed import Typed
from tests.sdk.types_of_all_kinds import Http, Size, Tcp, Thing, ThingSpec, ThingStatus, Tls

SCHEMA = schema_of(Thing)
CHECK = SchemaCheck(SCHEMA)
TYPED = Typed(Thing)
EXAMPLES = 300

INT64 = some.integers(-(2**63), 2**63 - 1)
WORDS = some.text("abcxyz-019é ", max_size=12)
NAMES = some.text("abc-09", min_size=1, max_size=20)
FREE = some.recursive(
    some.none() | some.booleans() | INT64 | WORDS,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
TIMES = some.datetimes(timezones=some.just(datetime.UTC), min_value=datetime.datetime(1, 1, 2))
PORTS = some.integers(1, 65535)
SPECS = some.builds(
    ThingSpec,
    image=WORDS,
    size=some.sampled_from(Size),
    replicas=some.integers(0, 99),
    share=some.floats(0, 1),
    port=some.integers(0, 2**62) | WORDS,
    limit=INT64 | some.sampled_from(["none", "auto"]),
    tls=some.none() | some.builds(Tls, secret_name=NAMES, port=PORTS),
    probes=some.lists(
        some.builds(Http, path=WORDS, headers=some.dictionaries(WORDS, WORDS, max_size=2))
        | some.builds(Tcp, number=PORTS),
        max_size=3,
    ),
    tags=some.sets(NAMES, max_size=3),
    labels=some.dictionaries(WORDS, some.none() | WORDS, max_size=3),
    weights=some.dictionaries(WORDS, some.integers(-100, 100).map(lambda each: each * 2), max_size=3),
    since=some.none() | TIMES,
    day=some.none() | some.dates(),
    blob=some.binary(max_size=20),
    free=FREE,
    mode=some.sampled_from(["a", "b", None]),
    pair=some.tuples(INT64, INT64),
    public=some.booleans(),
)
THINGS = some.builds(
    Thing,
    metadata=some.builds(Meta, name=NAMES),
    spec=SPECS,
    status=some.none() | some.builds(ThingStatus, ready=INT64, phase=some.sampled_from(["New", "Done"])),
)
GONE = object()
JUNK = some.sampled_from([GONE, None, True, -1, 7, 10**6, 0.5, "", "UPPER", [], ["a", "a"], {}, {"type": "tcp"}])


def as_json(thing: Thing) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(msgspec.json.encode(thing))
    return found


@settings(max_examples=EXAMPLES, deadline=None)
@given(THINGS)
def test_what_the_type_makes_the_schema_takes(thing: Thing) -> None:
    obj = as_json(thing)
    assert [error.message for error in CHECK.errors(obj)] == []
    kept = defaulted(pruned(obj, SCHEMA), SCHEMA)
    assert TYPED.from_json(kept) == TYPED.from_json(obj)  # what the server drops and adds means the same


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all parts of a spec."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(*way, step) for step, _ in inner] + [found for step, part in inner for found in places(part, (*way, step))]


def broken(obj: dict[str, Any], way: tuple[Any, ...], junk: Any) -> dict[str, Any]:
    """With something else at a place, or nothing."""
    found = copy.deepcopy(obj)
    at: Any = found["spec"]
    for step in way[:-1]:
        at = at[step]
    if junk is GONE:
        del at[way[-1]]
    else:
        at[way[-1]] = junk
    return found


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(THINGS, some.data())
def test_of_what_is_broken_both_think_the_same(thing: Thing, data: some.DataObject) -> None:
    obj = as_json(thing)
    spec = obj["spec"]
    spec.update(
        tls={"secretName": "a", "port": 1}, probes=[{"type": "http", "path": "/"}, {"type": "tcp", "number": 1}]
    )
    way = data.draw(some.sampled_from([way for way in places(spec) if way[0] != "free"]))
    sent = broken(obj, way, data.draw(JUNK))
    stored = defaulted(pruned(sent, SCHEMA), SCHEMA)
    refused = [f"{error.field}: {error.message}" for error in CHECK.errors(stored)]
    fault = TYPED.fault(json.dumps(stored).encode())
    if not says_more(stored, way):
        assert bool(refused) == bool(fault), (refused, fault)


def says_more(obj: dict[str, Any], way: tuple[Any, ...]) -> bool:
    """Where one of the two has to say less: a set that holds a value twice is one without it to the type."""
    tags = obj["spec"].get("tags")
    return way[0] == "tags" and isinstance(tags, list) and len({str(each) for each in tags}) < len(tags)
