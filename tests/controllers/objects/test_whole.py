"""Objects of any kind as the cache keeps them."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest

from oarlock.controllers.objects.whole import Whole, decode_whole, reader
from oarlock.controllers.objects.wire_parts import WireError

AT_MS = 1_767_600_000_000


def obj(**meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Website",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "u1",
            "resourceVersion": "7",
            "generation": 3,
            "creationTimestamp": "2026-01-05T08:00:00Z",
            "managedFields": [{"manager": "kubectl"}],
            **meta,
        },
        "spec": {"image": "nginx", "replicas": 2},
        "status": {"ready": 1},
    }


def read(doc: dict[str, Any], **options: Any) -> Whole:
    rv, whole = reader("example.com/v1", "Website", **options)(json.dumps(doc).encode())
    assert rv == doc["metadata"]["resourceVersion"]
    return whole


def test_what_is_kept() -> None:
    whole = read(obj(labels={"a": "b"}, finalizers=["x/y"]))
    assert (whole.key, whole.uid, whole.labels, whole.finalizers) == ("shop/web", "u1", {"a": "b"}, ("x/y",))
    assert (whole.generation, whole.created_ms, whole.deleting_ms, whole.fault) == (3, AT_MS, 0, "")
    body = msgspec.json.decode(whole.body)
    assert body["spec"] == {"image": "nginx", "replicas": 2}
    assert body["status"] == {"ready": 1}
    assert "managedFields" not in body["metadata"]
    assert "resourceVersion" not in body["metadata"]


def test_a_write_that_changes_nothing_is_no_change() -> None:
    assert read(obj()) == read(obj(resourceVersion="8", managedFields=[{"manager": "other"}]))
    assert read(obj()) != read(obj(annotations={"a": "b"}))


def test_an_object_in_a_list_is_the_same_as_in_a_watch() -> None:
    """Servers leave apiVersion and kind out of the items of lists."""
    item = obj()
    del item["apiVersion"], item["kind"]
    assert read(item) == read(obj())


def test_it_comes_back_from_its_blob() -> None:
    whole = read(obj(ownerReferences=[{"apiVersion": "v1", "kind": "Team", "name": "t", "uid": "t1"}]))
    assert decode_whole(msgspec.msgpack.encode(whole)) == whole


def test_of_one_without_a_namespace_the_key_is_its_name() -> None:
    doc = obj()
    del doc["metadata"]["namespace"]
    assert read(doc).key == "web"


def test_what_index_functions_say_is_kept_once() -> None:
    assert read(obj(), index=[lambda doc: [doc["spec"]["image"], "x", "x"]]).keys == ("nginx", "x")


def test_an_index_function_that_fails_is_told_of() -> None:
    whole = read(obj(), index=[lambda doc: doc["spec"]["tls"]])
    assert (whole.keys, whole.fault) == ((), "KeyError: 'tls'")


def test_what_was_asked_for_alone_is_kept() -> None:
    body = msgspec.json.decode(read(obj(), fields=("spec.image",)).body)
    assert (body["spec"], "status" in body, body["metadata"]["name"]) == ({"image": "nginx"}, False, "web")
    before = read(obj(), fields=("spec.image",))
    doc = obj()
    doc["spec"]["replicas"] = 5
    assert read(doc, fields=("spec.image",)) == before


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"metadata": {}}', b'{"metadata": {"name": 1, "uid": "u"}}', b"\xff"])
def test_what_is_no_object(raw: bytes) -> None:
    with pytest.raises(WireError, match="not a Website"):
        reader("example.com/v1", "Website")(raw)


def test_an_index_function_that_fails_keeps_nothing_from_the_others() -> None:
    """They may be those of other controllers: without them an object would wake nobody, and be found by nobody."""
    whole = read(obj(), index=[lambda obj: obj["no"], lambda obj: ["for=q:shop/web"]])
    assert (whole.keys, whole.fault) == (("for=q:shop/web",), "KeyError: 'no'")


@pytest.mark.parametrize("depth", [400, 800, 900, 990, 3000])
def test_an_object_that_is_nested_too_deeply_is_told_apart_from_a_bug(depth: int) -> None:
    """Anything else that it raised would stop the ingestor, and with it all objects."""
    raw = json.dumps(obj()).replace('"nginx"', "[" * depth + "]" * depth).encode()
    for fields in ([], ["spec.image.name"]):
        with contextlib.suppress(WireError):
            reader("example.com/v1", "Website", fields)(raw)
