"""Protobuf bodies of typed creates, built here field by field as newer kubectl sends them."""

from __future__ import annotations

import json

from tests.sandbox.api_harness import DEPLOYMENTS, Api

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


def deployment(*more: bytes) -> bytes:
    """As `kubectl create deployment` writes it: zeros, empty strings and an empty status among the rest."""
    meta = field(1, "web") + field(8, b"")
    container = field(1, "c") + field(2, "nginx") + field(6, field(2, 0) + field(3, 80)) + field(8, b"")
    pod = field(2, container + b"".join(more)) + field(3, "") + field(11, 0)
    labels = {1: "app", 2: "web"}
    spec = field(1, 3) + field(2, field(1, labels)) + field(3, field(1, field(11, labels)) + field(2, pod))
    spec += field(4, field(1, "")) + field(5, 0) + field(7, 0)
    return envelope("apps/v1", "Deployment", field(1, meta) + field(2, spec) + field(3, field(1, 0) + field(2, 0)))


def test_a_deployment(api: Api) -> None:
    code, answer = api.raw("POST", DEPLOYMENTS, deployment(), PROTOBUF)
    made = json.loads(answer)
    assert code == 201, made
    spec = made["spec"]
    assert (spec["replicas"], spec["selector"]) == (3, {"matchLabels": {"app": "web"}})
    (container,) = spec["template"]["spec"]["containers"]
    assert (container["name"], container["image"]) == ("c", "nginx")
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_what_would_be_lost_is_refused(api: Api) -> None:
    """A container's working directory has no line in the table."""
    code, answer = api.raw("POST", DEPLOYMENTS, deployment(field(5, "/srv")), PROTOBUF)
    assert (code, "send JSON" in json.loads(answer)["message"]) == (415, True)


def test_damaged_bodies_are_refused(api: Api) -> None:
    good = envelope("v1", "Namespace", field(1, field(1, "team")))
    for body in (b"", b"k8s", good[4:], good[:-3], b"k8s\x00\xff\xff\xff"):
        code, answer = api.raw("POST", "/api/v1/namespaces", body, PROTOBUF)
        assert code in (400, 415), (body, answer)
    assert api.call("GET", "/api/v1/namespaces/team")[0] == 404
