"""Addresses that are good, those that are not, and those that are taken."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.metrics.serving import bind_address
from oarlock.workers.metrics.serving.bind_address import FD_VARIABLE, BadBindAddress, given, listen, url
from tests.e2e.e2e_helpers import oarlock

KUBECONFIG = """\
{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
 clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: u, user: {}}]}
"""


@pytest.mark.parametrize("text", ["0", "", " 0 "])
def test_none(text: str) -> None:
    assert listen(text) == []


@pytest.mark.parametrize("text", ["127.0.0.1:0", "localhost:0", ":0", "0.0.0.0:0"])
def test_any_free_port(text: str) -> None:
    (listening,) = listen(text)
    with listening:
        assert url(listening).startswith("http://127.0.0.1:" if text != "localhost:0" else "http://")
        with socket.create_connection(("127.0.0.1", listening.getsockname()[1]), 5):
            pass


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9090", "'9090' is no address"),
        ("127.0.0.1", "is no address"),
        ("127.0.0.1:", "'' is no port"),
        ("127.0.0.1:http", "'http' is no port"),
        ("127.0.0.1:65536", "'65536' is no port"),
        ("127.0.0.1:-1", "'-1' is no port"),
        ("::1:9090", "is no address"),
        ("no.such.host.invalid:9090", "--metrics-bind-address no.such.host.invalid:9090: "),
        ("192.0.2.1:9090", "--metrics-bind-address 192.0.2.1:9090: cannot assign requested address"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadBindAddress) as caught:
        listen(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "give HOST:PORT that is free" in str(caught.value)


def test_a_taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadBindAddress, match=f"127.0.0.1:{port}: the port is in use"):
            listen(f"127.0.0.1:{port}")
    with pytest.raises(BadBindAddress, match="there is no port 65536"):
        listen("127.0.0.1:65535", 2)


def test_a_port_for_each_shard_or_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbouring ports cannot be had for sure, so what opens them is replaced."""
    opened: list[tuple[str, int]] = []
    made: list[socket.socket] = []

    def one(host: str, port: int) -> socket.socket:
        if port == 9092:
            raise OSError(errno.EADDRINUSE, "taken")
        opened.append((host, port))
        made.append(socket.create_server(("127.0.0.1", 0)))
        return made[-1]

    monkeypatch.setattr(bind_address, "_open", one)
    for listening in listen("10.0.0.1:9090", 2):
        listening.close()
    assert opened == [("10.0.0.1", 9090), ("10.0.0.1", 9091)]
    with pytest.raises(BadBindAddress, match=r"10.0.0.1:9090 \(port 9092\): the port is in use"):
        listen("10.0.0.1:9090", 3)
    assert [each.fileno() for each in made] == [-1] * 4, "all are closed again"


def test_sockets_given_by_a_parent_are_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        monkeypatch.setenv(FD_VARIABLE, str(os.dup(ours.fileno())))
        (taken,) = given()
        with taken:
            assert taken.getsockname() == ours.getsockname()
        assert given() == []


@pytest.mark.parametrize(("command", "address"), [("worker", "taken"), ("ingest", "nonsense")])
def test_commands_refuse_it_in_one_line(command: str, address: str, server: EmbeddedRedis, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = f"127.0.0.1:{taken.getsockname()[1]}" if address == "taken" else address
        places = ("--redis", server.url("worker"), "--kubeconfig", str(kubeconfig))
        done = oarlock(command, *places, "--metrics-bind-address", text)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("oarlock: --metrics-bind-address ")
    assert ("the port is in use" if address == "taken" else "'nonsense' is no address") in line
