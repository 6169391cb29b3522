"""An object that does not fit its type is told by its path and what is wrong, in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import pytest

import oarlock
from oarlock.sdk.objects import to_json
from oarlock.sdk.types.typed import DoesNotFit, Typed
from oarlock.workers.rq.shell import TurnStopped
from oarlock.workers.turn.engine.runner import TurnTookTooLong
from tests.sdk.types_of_all_kinds import Http, Size, Tcp, Thing, ThingStatus

GOOD: dict[str, Any] = {"image": "a"}


def body(spec: Any) -> bytes:
    return json.dumps({"apiVersion": "x", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}).encode()


def test_what_fits_is_decoded() -> None:
    probes = [{"type": "http", "path": "/"}, {"type": "tcp", "number": 5}]
    thing = Typed(Thing).decode(body({"image": "a", "size": "large", "tags": ["x"], "probes": probes, "unknown": 1}))
    assert (thing.name, thing.spec.image, thing.spec.size, thing.spec.tags) == ("a", "a", Size.LARGE, {"x"})
    assert thing.spec.probes == [Http(path="/"), Tcp(number=5)]
    assert thing.status is None
    assert Typed(Thing).fault(body(GOOD)) == ""


MISFITS: list[tuple[Any, str]] = [
    ({}, "spec.image: is required"),
    ([], "spec: has to be an object, not a list"),
    (None, "spec: has to be an object, not null"),
    ({"image": 1}, "spec.image: has to be a text, not a whole number"),
    ({**GOOD, "public": "yes"}, "spec.public: has to be true or false, not a text"),
    ({**GOOD, "port": []}, "spec.port: has to be a whole number or a text, not a list"),
    ({**GOOD, "share": 2}, "spec.share: has to be at most 1.0"),
    ({**GOOD, "replicas": -1}, "spec.replicas: has to be at least 0"),
    ({**GOOD, "size": "huge"}, "spec.size: 'huge' is not one of large, small"),
    ({**GOOD, "mode": "c"}, "spec.mode: 'c' is not one of a, b"),
    ({**GOOD, "tls": {}}, "spec.tls.secretName: is required"),
    ({**GOOD, "tls": {"secretName": ""}}, "spec.tls.secretName: needs at least 1 character"),
    ({**GOOD, "tls": {"secretName": "A"}}, "spec.tls.secretName: has to match '^[a-z0-9-]+$'"),
    ({**GOOD, "tls": {"secretName": "a" * 64}}, "spec.tls.secretName: needs at most 63 characters"),
    (
        {**GOOD, "probes": [{"type": "tcp", "number": 1}, {"type": "udp"}]},
        "spec.probes[1].type: 'udp' is not one of http, tcp",
    ),
    ({**GOOD, "probes": [{"type": "tcp", "number": 0}]}, "spec.probes[0].number: has to be at least 1"),
    ({**GOOD, "probes": [{}] * 4}, "spec.probes[0].type: is required"),
    ({**GOOD, "weights": {"a": 2, "b.c/d": 3}}, "spec.weights[b.c/d]: has to be a multiple of 2"),
    ({**GOOD, "weights": {str(each): 2 for each in range(4)}}, "spec.weights: needs at most 3 entries"),
    ({**GOOD, "labels": {"a": "b", "c": 1}}, "spec.labels.c: has to be a text or null, not a whole number"),
    ({**GOOD, "since": "now"}, "spec.since: invalid RFC3339 encoded datetime"),
    ({**GOOD, "pair": [1]}, "spec.pair: needs 2 items"),
]


@pytest.mark.parametrize(("spec", "told"), MISFITS, ids=lambda each: str(each)[:60])
def test_a_misfit_in_words(spec: Any, told: str) -> None:
    assert Typed(Thing).fault(body(spec)) == told


def test_no_json() -> None:
    with pytest.raises(DoesNotFit, match=r"^no JSON: "):
        Typed(Thing).decode(b"{")
    assert Typed(Thing).fault(b"[]") == "the object: has to be an object, not a list"


def test_a_value_is_not_told() -> None:
    """It may be a password."""
    assert "hunter2" not in Typed(Thing).fault(body({**GOOD, "replicas": "hunter2", "tls": {"secretName": "hunter2 "}}))


def test_a_type_that_cannot_be_decoded() -> None:
    class Bad(oarlock.Object):
        spec: list[int] | set[int]

    with pytest.raises(oarlock.BadDefinition, match=r"^Bad: "):
        Typed(Bad)


PYDANTIC: list[tuple[Any, str]] = [
    ({}, "spec.image: field required"),
    ({**GOOD, "replicaCount": -1}, "spec.replicaCount: input should be greater than or equal to 0"),
    ({**GOOD, "probe": {"type": "tcp"}}, "spec.probe.port: field required"),
    ({**GOOD, "tags": ["a", 1]}, "spec.tags[1]: input should be a valid string"),
    ({**GOOD, "replicaCount": 6}, "spec: value error, more than 5 need a tag"),
    (GOOD, ""),
]


@pytest.mark.parametrize(("spec", "told"), PYDANTIC, ids=str)
def test_pydantic(spec: Any, told: str) -> None:
    pytest.importorskip("pydantic")
    from tests.sdk.pydantic_site import PydanticSite

    assert Typed(PydanticSite).fault(body(spec)) == told


class Zone(oarlock.Struct):
    name: str

    def __post_init__(self) -> None:
        {"eu": "eu-1"}[self.name]


@oarlock.resource("example.com/v1")
class Place(oarlock.Object):
    spec: Zone


def of_pydantic() -> type[oarlock.Object]:
    pydantic = pytest.importorskip("pydantic")

    def known(name: str) -> str:
        return {"eu": "eu-1"}[name]

    model = pydantic.create_model("Spec", name=(Annotated[str, pydantic.AfterValidator(known)], ...))
    return oarlock.resource("example.com/v1")(type("Place", (oarlock.Object,), {"__annotations__": {"spec": model}}))


RAISE = [
    pytest.param(lambda: Place, "the object: its type Place raised KeyError (__post_init__, line ", id="a Struct"),
    pytest.param(of_pydantic, "spec: its type Spec raised KeyError (known, line ", id="a pydantic model"),
]


@pytest.mark.parametrize(("model", "told"), RAISE)
def test_a_type_that_raises_what_it_likes_is_a_misfit(model: Callable[[], type[oarlock.Object]], told: str) -> None:
    fault = Typed(model()).fault(body({"name": "hunter2"}))
    assert fault.startswith(told)
    assert fault.endswith(" of test_typed.py); raise ValueError for what is not allowed")
    assert Typed(model()).fault(body({"name": "eu"})) == ""


@pytest.mark.parametrize("interruption", [TurnTookTooLong("30 s"), TurnStopped("asked"), MemoryError()], ids=repr)
@pytest.mark.parametrize("in_pydantic", [False, True], ids=["a Struct", "a pydantic model"])
def test_what_ends_a_turn_says_nothing_of_the_object(interruption: Exception, in_pydantic: bool) -> None:
    """It is raised by a signal, wherever the code is. As a misfit the object would count as Never."""

    def interrupted(_: Any) -> None:
        raise interruption

    if in_pydantic:
        pydantic = pytest.importorskip("pydantic")
        spec = pydantic.create_model("Spec", name=(Annotated[str, pydantic.AfterValidator(interrupted)], ...))
    else:
        spec = type("Spec", (oarlock.Struct,), {"__annotations__": {"name": str}, "__post_init__": interrupted})
    model = oarlock.resource("example.com/v1")(type("Place", (oarlock.Object,), {"__annotations__": {"spec": spec}}))
    with pytest.raises(type(interruption)):
        Typed(model).decode(body({"name": "eu"}))


def test_pydantic_there_and_back() -> None:
    pytest.importorskip("pydantic")
    from tests.sdk.pydantic_site import PydanticSite, SiteStatus

    site = Typed(PydanticSite).decode(body({"image": "a", "replicaCount": 2}))
    assert site.spec.replica_count == 2
    assert to_json(SiteStatus(ready_count=1)) == {"readyCount": 1}
    told = to_json(site)
    assert (told["kind"], told["spec"]) == ("PydanticSite", {"image": "a", "replicaCount": 2, "tags": []})


def test_a_status_as_json() -> None:
    assert to_json(ThingStatus(ready=3)) == {"ready": 3}
