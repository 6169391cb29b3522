"""Metadata rules, one line each."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.validation import validate_create, validate_update

Obj = dict[str, Any]

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1"}


def config_map(**meta: Any) -> Obj:
    """A kind without rules of its own."""
    return {"metadata": {"name": "web", "namespace": "default", **meta}}


def told(errors: list[Any]) -> list[str]:
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("meta", "field", "words"),
    [
        pytest.param({"name": ""}, "metadata.name", "name or generateName is required", id="no name"),
        pytest.param({"name": "Web"}, "metadata.name", "lowercase RFC 1123 subdomain", id="upper case"),
        pytest.param({"name": "a_b"}, "metadata.name", "lowercase RFC 1123 subdomain", id="underscore"),
        pytest.param({"name": "-a"}, "metadata.name", "lowercase RFC 1123 subdomain", id="leading dash"),
        pytest.param({"name": "a" * 254}, "metadata.name", "no more than 253 bytes", id="name too long"),
        pytest.param({"generateName": "Web-"}, "metadata.generateName", "RFC 1123", id="bad prefix"),
        pytest.param({"namespace": ""}, "metadata.namespace", "Required value", id="no namespace"),
        pytest.param({"namespace": "a.b"}, "metadata.namespace", "lowercase RFC 1123 label", id="dotted"),
        pytest.param({"labels": {"a b": "x"}}, "metadata.labels", "name part must consist", id="label key"),
        pytest.param({"labels": {"a/b/c": "x"}}, "metadata.labels", "a qualified name must", id="two slashes"),
        pytest.param({"labels": {"/b": "x"}}, "metadata.labels", "prefix part must be non-empty", id="prefix"),
        pytest.param({"labels": {"A.b/c": "x"}}, "metadata.labels", "prefix part a lower", id="bad prefix part"),
        pytest.param({"labels": {"": "x"}}, "metadata.labels", "name part must be non-empty", id="empty key"),
        pytest.param({"labels": {"a" * 64: "x"}}, "metadata.labels", "no more than 63 bytes", id="long key"),
        pytest.param({"labels": {"a": "b c"}}, "metadata.labels", "a valid label must", id="label value"),
        pytest.param({"labels": {"a": "b" * 64}}, "metadata.labels", "no more than 63 bytes", id="long value"),
        pytest.param({"annotations": {"a b": ""}}, "metadata.annotations", "name part", id="annotation key"),
        pytest.param(
            {"annotations": {"a": "é" * 140_000}}, "metadata.annotations", "Too long", id="annotations too long"
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "apiVersion": ""}]},
            "metadata.ownerReferences.apiVersion",
            "version must not be empty",
            id="owner without version",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "kind": ""}]},
            "metadata.ownerReferences.kind",
            "must not be empty",
            id="owner without kind",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "name": ""}]},
            "metadata.ownerReferences.name",
            "must not be empty",
            id="owner without name",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            "metadata.ownerReferences.uid",
            "must not be empty",
            id="owner without uid",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "apiVersion": "v1", "kind": "Event"}]},
            "metadata.ownerReferences",
            "disallowed from being an owner",
            id="owned by an event",
        ),
        pytest.param(
            {
                "ownerReferences": [
                    {**OWNER, "controller": True},
                    {**OWNER, "uid": "u2", "name": "other", "controller": True},
                ]
            },
            "metadata.ownerReferences",
            "Only one reference can have Controller set to true. "
            'Found "true" in references for ReplicaSet/web and ReplicaSet/other',
            id="two controllers",
        ),
        pytest.param({"finalizers": ["hold"]}, "metadata.finalizers", "fully qualified", id="plain finalizer"),
        pytest.param({"finalizers": ["a b/c"]}, "metadata.finalizers", "prefix part", id="bad finalizer"),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            "metadata.finalizers",
            "cannot be both set",
            id="two policies",
        ),
    ],
)
def test_a_new_object(meta: Obj, field: str, words: str) -> None:
    errors = validate_create("ConfigMap", config_map(**meta))
    assert [error.field for error in errors] == [field] * len(errors)
    assert len(errors) >= 1
    assert words in " ".join(told(errors))


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param({}, id="the least"),
        pytest.param({"name": "", "generateName": "web-"}, id="a name to be made"),
        pytest.param({"name": "a.b-c.d1"}, id="dots"),
        pytest.param({"labels": {"a.b/C_d.e-f": "G_h.i-j", "k": ""}}, id="labels"),
        pytest.param({"annotations": {"Example.COM/Any": "anything {}\n"}}, id="annotation keys are lower-cased"),
        pytest.param({"ownerReferences": [OWNER, {**OWNER, "uid": "u2", "controller": True}]}, id="owners"),
        pytest.param({"finalizers": ["foregroundDeletion", "example.com/hold", "kubernetes"]}, id="finalizers"),
        pytest.param({"labels": {}, "annotations": {}, "ownerReferences": [], "finalizers": []}, id="empty"),
    ],
)
def test_a_good_object(meta: Obj) -> None:
    assert validate_create("ConfigMap", config_map(**meta)) == []


@pytest.mark.parametrize(
    ("kind", "name", "good"),
    [
        ("Namespace", "a.b", False),
        ("Namespace", "a-b", True),
        ("Node", "a.b", True),
        ("Pod", "a.b", True),
        ("Service", "1a", False),
        ("Service", "a1", True),
    ],
)
def test_names_by_kind(kind: str, name: str, good: bool) -> None:
    meta: Obj = {"name": name} if kind in ("Namespace", "Node") else {"name": name, "namespace": "default"}
    errors = validate_create(kind, {"metadata": meta})
    assert ("metadata.name" not in [error.field for error in errors]) is good


@pytest.mark.parametrize(("size", "good"), [(256 * 1024, True), (256 * 1024 + 1, False)])
def test_so_much_may_be_annotated(size: int, good: bool) -> None:
    annotations = {"a": "x" * (size - 1)}
    assert (validate_create("ConfigMap", config_map(annotations=annotations)) == []) is good


def test_cluster_scope_has_no_namespace() -> None:
    errors = validate_create("Node", {"metadata": {"name": "n", "namespace": "default"}})
    assert told(errors) == ["metadata.namespace: Forbidden: not allowed on this type"]


STORED = {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}


@pytest.mark.parametrize(
    ("new", "old", "field", "words"),
    [
        pytest.param({"name": "x"}, {}, "metadata.name", "field is immutable", id="name"),
        pytest.param({"namespace": "x"}, {}, "metadata.namespace", "field is immutable", id="namespace"),
        pytest.param({"uid": "x"}, {}, "metadata.uid", "field is immutable", id="uid"),
        pytest.param(
            {"creationTimestamp": "2026-01-02T00:00:00Z"},
            {},
            "metadata.creationTimestamp",
            "field is immutable",
            id="creationTimestamp",
        ),
        pytest.param(
            {"deletionTimestamp": "2026-01-02T00:00:00Z"},
            {},
            "metadata.deletionTimestamp",
            "may only be changed via deletion",
            id="deletionTimestamp",
        ),
        pytest.param(
            {"deletionGracePeriodSeconds": 0},
            {"deletionGracePeriodSeconds": 30},
            "metadata.deletionGracePeriodSeconds",
            "may only be changed via deletion",
            id="deletionGracePeriodSeconds",
        ),
        pytest.param(
            {"finalizers": ["a.b/c", "d.e/f"]},
            {"deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["a.b/c"]},
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted",
            id="a finalizer while being deleted",
        ),
        pytest.param({"labels": {"a": "b c"}}, {}, "metadata.labels", "a valid label", id="labels again"),
    ],
)
def test_an_update(new: Obj, old: Obj, field: str, words: str) -> None:
    before = config_map(**STORED, **old)
    errors = validate_update("ConfigMap", config_map(**{**STORED, **old, **new}), before)
    assert [error.field for error in errors] == [field]
    assert words in str(errors[0])


def test_finalizers_may_go_while_being_deleted() -> None:
    before = config_map(deletionTimestamp="2026-01-02T00:00:00Z", finalizers=["a.b/c", "d.e/f"])
    after = config_map(deletionTimestamp="2026-01-02T00:00:00Z", finalizers=["d.e/f"])
    assert validate_update("ConfigMap", after, before) == []


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("http", 0),
        ("http-2", 0),
        ("a" * 16, 1),
        ("80", 1),
        ("a--b", 1),
        ("-a", 1),
        ("HTTP", 2),
        ("", 2),
    ],
)
def test_port_names(text: str, problems: int) -> None:
    assert len(names.port_name(text)) == problems


@pytest.mark.parametrize(("prefix", "good"), [("web-", True), ("web", True), ("-", False), ("web--", True)])
def test_a_generated_name_may_end_its_prefix_in_a_dash(prefix: str, good: bool) -> None:
    assert (names.generated_prefix(prefix, names.dns_subdomain) == ()) is good
