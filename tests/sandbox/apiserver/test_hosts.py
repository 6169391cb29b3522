"""Requests that were sent to another name than the server's own: a page's name may have been led to this machine."""

from __future__ import annotations

import json
import socket

import pytest

from oarlock.sandbox.apiserver.http.hosts import Hosts
from oarlock.sandbox.apiserver.server import Settings
from tests.sandbox.api_harness import PODS, Api, pod, running

OWN = socket.gethostname().lower()


@pytest.mark.parametrize(
    ("listening", "ours", "others"),
    [
        pytest.param(
            "127.0.0.1",
            ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "localhost.", "[::1]:8080"],
            [
                "",
                "evil.example",
                "evil.example:8080",
                "127.0.0.1.evil.example",
                "localhost.evil.example",
                "10.0.0.7",
                "::1",
            ],
            id="loopback",
        ),
        pytest.param("cluster", ["cluster:6443", "localhost"], ["evil.example:6443", "10.0.0.7:6443"], id="a name"),
        pytest.param("10.0.0.7", ["10.0.0.7:6443"], ["localhost", "10.0.0.8", "evil.example"], id="an address"),
        pytest.param(
            "0.0.0.0",
            ["10.0.0.7:6443", "[fd00::7]:6443", "localhost", f"{OWN}:6443"],
            ["evil.example", "10.0.0.7.evil.example", "user@evil.example"],
            id="every address",
        ),
    ],
)
def test_which_names_are_ours(listening: str, ours: list[str], others: list[str]) -> None:
    hosts = Hosts(listening)
    assert [host for host in ours if not hosts.ours(host)] == []
    assert [host for host in others if hosts.ours(host)] == []


def test_a_request_to_another_name_does_nothing_and_learns_nothing() -> None:
    with running(Settings(token="sesame")) as api:
        bearer = {"Authorization": "Bearer sesame", "Content-Type": "application/json"}

        def asked(api: Api, host: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
            return api.raw(method, path, body, headers={"Host": host, **bearer})[:2]

        for path in (PODS, "/version", "/readyz", "/_oarlock/faults"):
            code, answer = asked(api, "evil.example:80", "GET", path)
            assert (code, json.loads(answer)["reason"]) == (421, "MisdirectedRequest")
        body = json.dumps(pod("a")).encode()
        assert asked(api, "evil.example", "POST", PODS, body)[0] == 421
        assert asked(api, "localhost", "GET", f"{PODS}/a")[0] == 404
        assert asked(api, "localhost", "POST", PODS, body)[0] == 201
