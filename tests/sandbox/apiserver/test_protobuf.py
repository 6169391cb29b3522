"""Protobuf bodies of typed creates, built here field by field as newer kubectl sends them."""

from __future__ import annotations

import json

from tests.sandbox.api_harness import Api

PROTOBUF = {"Content-Type": "application/vnd.kubernetes.protobuf"}


def field(number: int, content: bytes | str | dict[int, bytes | str] | int) -> bytes:
    """One protobuf field: varint for an int, else length-delimited (all shorter than 128 bytes)."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    if isinstance(content, dict):
        content = b"".join(field(n, c) for n, c in content.items())
    data = content.encode() if isinstance(content, str) else content
    return bytes([number << 3 | 2, len(data)]) + data


def envelope(version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, {1: version, 2: kind}) + field(2, raw) + field(3, "") + field(4, "")


def test_a_namespace(api: Api) -> None:
    # Empty strings, an empty creationTimestamp, spec and status, as the Go encoder writes them.
    meta = field(1, "team") + field(2, "") + field(3, "") + field(5, "") + field(7, 0) + field(8, b"")
    meta += field(11, {1: "a", 2: "b"})
    body = envelope("v1", "Namespace", field(1, meta) + field(2, b"") + field(3, field(1, "")))
    code, answer = api.raw("POST", "/api/v1/namespaces", body, PROTOBUF)
    made = json.loads(answer)
    assert code == 201, made
    assert made["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": "team"}


def test_a_quota(api: Api) -> None:
    hard = field(1, {1: "pods", 2: field(1, "5")})
    body = envelope("v1", "ResourceQuota", field(1, field(1, "q")) + field(2, hard) + field(3, b""))
    code, answer = api.raw("POST", "/api/v1/namespaces/default/resourcequotas", body, PROTOBUF)
    made = json.loads(answer)
    assert code == 201, made
    assert made["spec"] == {"hard": {"pods": "5"}}


def test_a_secret_and_a_configmap(api: Api) -> None:
    body = envelope("v1", "Secret", field(1, field(1, "s")) + field(2, {1: "k", 2: b"\x00v"}) + field(3, "Opaque"))
    code, answer = api.raw("POST", "/api/v1/namespaces/default/secrets", body, PROTOBUF)
    assert (code, json.loads(answer)["data"]) == (201, {"k": "AHY="})
    body = envelope("v1", "ConfigMap", field(1, field(1, "c")) + field(2, {1: "k", 2: "v"}))
    code, answer = api.raw("POST", "/api/v1/namespaces/default/configmaps", body, PROTOBUF)
    assert (code, json.loads(answer)["data"]) == (201, {"k": "v"})


def test_damaged_bodies_are_refused(api: Api) -> None:
    good = envelope("v1", "Namespace", field(1, field(1, "team")))
    for body in (b"", b"k8s", good[4:], good[:-3], b"k8s\x00\xff\xff\xff"):
        code, answer = api.raw("POST", "/api/v1/namespaces", body, PROTOBUF)
        assert code in (400, 415), (body, answer)
    assert api.call("GET", "/api/v1/namespaces/team")[0] == 404
