"""The API server as a process: ready line, arguments, ports, TLS, its end."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from oarlock.sandbox.apiserver.__main__ import main
from tests import ROOT

WAIT_S = 30.0
COMMAND = [sys.executable, "-m", "oarlock.sandbox.apiserver"]


@contextmanager
def process(*args: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The running process and its ready line."""
    child = subprocess.Popen([*COMMAND, *args], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert child.stdout is not None
        yield child, json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.wait(WAIT_S)


def refused(*args: str) -> str:
    """The one line with which the process ends, with code 2."""
    done = subprocess.run([*COMMAND, *args], capture_output=True, text=True, cwd=ROOT, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_ready_and_the_end(tmp_path: Path) -> None:
    """Ready when it says so; ends at SIGTERM soon although watches are open."""
    ready_file, log = tmp_path / "ready.json", tmp_path / "audit.log"
    args = ("--state-dir", str(tmp_path / "state"), "--ready-file", str(ready_file), "--audit-log", str(log))
    with process(*args) as (child, ready):
        assert json.loads(ready_file.read_text()) == ready
        assert ready["pid"] == child.pid
        config = yaml.safe_load(Path(ready["kubeconfig"]).read_text())
        assert config["clusters"][0]["cluster"]["server"] == ready["url"]
        port = int(ready["url"].rpartition(":")[2])
        watch = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        watch.request("GET", "/api/v1/pods?watch=1")
        answer = watch.getresponse()
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        body = json.dumps({"metadata": {"name": "n"}})
        client.request("POST", "/api/v1/nodes", body, {"Content-Type": "application/json"})
        assert client.getresponse().status == 201
        began_s = time.monotonic()
        child.send_signal(signal.SIGTERM)
        assert answer.read() == b""
        assert child.wait(WAIT_S) == 0
        assert time.monotonic() - began_s < 5.0
        assert json.loads(log.read_text())["objectRef"]["name"] == "n"
        client.close()
        watch.close()


def test_a_new_token_is_told_by_the_kubeconfig_alone(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    args = ("--state-dir", str(tmp_path), "--new-token", "--audit-log", str(log), "--audit-reads")
    with process(*args) as (_, ready):
        (user,) = yaml.safe_load((tmp_path / "kubeconfig").read_text())["users"]
        token = user["user"]["token"]
        assert token not in json.dumps(ready)
        (cluster,) = yaml.safe_load((tmp_path / "kubeconfig").read_text())["clusters"]
        prefix = cluster["cluster"]["server"].removeprefix(ready["url"])
        bearer = {"Authorization": f"Bearer {token}"}
        for path, given, expected in (
            ("/api/v1/pods", {}, 401),
            ("/api/v1/pods", bearer, 200),
            (f"{prefix}/api/v1/pods", {}, 200),  # kubectl sends no bearer token without TLS
            (f"{prefix}/api/v1/pods?limit=1", bearer, 200),
            (f"{prefix}x/api/v1/pods", bearer, 401),
            ("/token//api/v1/pods", {}, 401),
            (prefix, {}, 404),  # as "/"
            (f"{prefix}/{prefix}/api/v1/pods", {}, 404),
        ):
            client = http.client.HTTPConnection(ready["url"].removeprefix("http://"), timeout=WAIT_S)
            client.request("GET", path, headers=given)
            assert client.getresponse().status == expected, path
            client.close()
    assert token not in log.read_text()


@pytest.mark.parametrize("more", [(), ("--token", "x", "--kubeconfig", "k")])
def test_a_new_token_that_nobody_would_learn(more: tuple[str, ...]) -> None:
    assert "--new-token needs --state-dir or --kubeconfig" in refused("--new-token", *more)


def test_it_listens_on_loopback_only(tmp_path: Path) -> None:
    with process("--state-dir", str(tmp_path)) as (_, ready):
        assert ready["url"].startswith("http://127.0.0.1:")


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused("--port", str(port)) == (
            f"oarlock: the API server cannot listen on 127.0.0.1:{port}: the port is in use\n"
        )


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--port", "70000"), "--port 70000 is not a port"),
        (("--fault", "{"), "--fault is not JSON"),
        (("--fault", '{"action":"explode"}'), "is not one of"),
        (("--unpullable", "("), "--unpullable: '(' is not a regular expression"),
        (("--tls-cert-file", "x"), "go together"),
        (("--tls-cert-file", "/none", "--tls-key-file", "/none"), "No such file"),
        (("--audit-log", "/none/such/file"), "No such file"),
        (("--host", "192.0.2.1"), "cannot listen on 192.0.2.1"),
    ],
)
def test_arguments_that_make_no_sense(args: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert told in said.err


def test_faults_from_the_start() -> None:
    with process("--fault", '{"action":"refuse429","verbs":["list"]}') as (_, ready):
        client = http.client.HTTPConnection("127.0.0.1", int(ready["url"].rpartition(":")[2]), timeout=WAIT_S)
        client.request("GET", "/api/v1/pods")
        assert client.getresponse().status == 429
        client.close()


def test_tls_with_a_client_certificate(tmp_path: Path) -> None:
    """The name in the certificate is the user in the audit log."""
    certificate, key = make_certificate(tmp_path, "ann")
    log = tmp_path / "audit.log"
    args = ("--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--client-ca-file", str(certificate))
    with process(*args, "--audit-log", str(log), "--state-dir", str(tmp_path)) as (child, ready):
        config = yaml.safe_load((tmp_path / "kubeconfig").read_text())
        assert config["clusters"][0]["cluster"]["certificate-authority-data"]
        assert ready["url"].startswith("https://")
        context = ssl.create_default_context(cafile=str(certificate))
        context.load_cert_chain(certificate, key)
        port = int(ready["url"].rpartition(":")[2])
        client = http.client.HTTPSConnection("127.0.0.1", port, timeout=WAIT_S, context=context)
        body = json.dumps({"metadata": {"name": "n"}})
        client.request("POST", "/api/v1/nodes", body, {"Content-Type": "application/json"})
        assert client.getresponse().status == 201
        client.close()
        child.send_signal(signal.SIGTERM)
        assert child.wait(WAIT_S) == 0
    assert json.loads(log.read_text())["user"] == {"username": "ann"}


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 that is its own authority."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    made = subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
            "-days", "1", "-keyout", str(key), "-out", str(certificate),
        ],
        capture_output=True,
        check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"openssl cannot make a certificate here: {made.stderr.decode()}")
    return certificate, key
