"""Each way to be somebody, against a real server: certificates, an exec plugin, a projected token that rotates."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarlock.cluster.access.config import ClusterConfig, in_cluster, load
from oarlock.cluster.access.credentials import REREAD_S, Auth, FileCredentials
from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client
from oarlock.cluster.resources import NODES, PODS
from tests.realserver.accounts import NAMESPACE, install, kubeconfig, kubectl, token
from tests.realserver.server import RealServer

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.environ.get("OARLOCK_TEST_SERVER") != "real", reason="make test-cluster has a real server"),
]

FORGOTTEN_S = 200.0
"""A server goes on for ten seconds with what it found a token to be."""


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


def certificate(folder: Path, name: str, group: str) -> tuple[Path, Path]:
    """(certificate, key) of a user, signed by the authority in the folder."""
    made = ("-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    openssl(folder, "req", "-new", *made, "-subj", f"/O={group}/CN={name}")
    signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-out", f"{name}.crt")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signed)
    return folder / f"{name}.crt", folder / f"{name}.key"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    folder = tmp_path_factory.mktemp("server")
    made = ("-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt")
    openssl(folder, "req", "-x509", *made, "-days", "1", "-subj", "/CN=authority")
    with RealServer(folder, rbac=True, flags=[f"--client-ca-file={folder / 'ca.crt'}"]) as running:
        install(running)
        for group in ("rowers", "scullers"):
            binding = f"{group} --clusterrole=oarlock-ingestor --group={group}"
            kubectl(running, "create", "clusterrolebinding", *binding.split())
        yield running


async def list_nodes(client: Client) -> Answer:
    """The first thing an ingestor does, as one answer."""
    return await client.transport.read(NODES.collection())


def ask(config: ClusterConfig) -> int:
    """The code of one list."""

    async def once() -> Answer:
        async with Client(config) as client:
            return await list_nodes(client)

    answer = asyncio.run(asyncio.wait_for(once(), 100))
    return answer.code


def patiently(config: ClusterConfig) -> int:
    """Roles arrive at the authorizer by a watch."""
    ends_s = time.monotonic() + 60
    while (code := ask(config)) == 403 and time.monotonic() < ends_s:
        time.sleep(0.1)
    return code


def test_client_certificates_in_files(server: RealServer, tmp_path: Path) -> None:
    crt, key = certificate(server.folder, "alice", "rowers")
    path = kubeconfig(server, tmp_path / "config", {"client-certificate": str(crt), "client-key": str(key)})
    assert patiently(load(path)) == 200


def test_a_certificate_of_somebody_without_rights_is_known_but_refused(server: RealServer, tmp_path: Path) -> None:
    crt, key = certificate(server.folder, "mallory", "strangers")
    path = kubeconfig(server, tmp_path / "config", {"client-certificate": str(crt), "client-key": str(key)})
    assert ask(load(path)) == 403


def test_certificates_of_another_authority_are_not_accepted(server: RealServer, tmp_path: Path) -> None:
    made = ("-newkey", "rsa:2048", "-nodes", "-keyout", "own.key", "-out", "own.crt")
    openssl(tmp_path, "req", "-x509", *made, "-days", "1", "-subj", "/O=rowers/CN=alice")
    files = {"client-certificate": str(tmp_path / "own.crt"), "client-key": str(tmp_path / "own.key")}
    assert ask(load(kubeconfig(server, tmp_path / "config", files))) == 401


def test_certificates_that_are_replaced_in_their_files(server: RealServer, tmp_path: Path) -> None:
    """New connections are made with the new ones: the server sees another user."""
    now_s = [0.0]
    crt, key = certificate(server.folder, "eve", "strangers")
    files = {"certificate_path": tmp_path / "crt", "key_path": tmp_path / "key"}

    def put(certificate_file: Path, key_file: Path) -> None:
        files["certificate_path"].write_bytes(certificate_file.read_bytes())
        files["key_path"].write_bytes(key_file.read_bytes())

    put(crt, key)
    credentials = FileCredentials(Auth(), **files, clock=lambda: now_s[0])
    base = load(server.kubeconfig)

    async def run() -> list[int]:
        async with Client(ClusterConfig(base.server, base.tls, credentials)) as client:
            codes = [(await list_nodes(client)).code]
            put(*certificate(server.folder, "bob", "scullers"))
            codes.append((await list_nodes(client)).code)
            now_s[0] = REREAD_S
            codes.append((await list_nodes(client)).code)
        return codes

    assert asyncio.run(asyncio.wait_for(run(), 100)) == [403, 403, 200]


def plugin(folder: Path, status: dict[str, Any], version: str) -> dict[str, Any]:
    """The user entry of a program that counts its runs and prints the status found in a file."""
    (folder / "status.json").write_text(json.dumps(status))
    program = folder / "log-in"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, pathlib\nhere = pathlib.Path({str(folder)!r})\n"
        "(here / 'runs').open('a').write('x')\n"
        "asked = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "status = json.loads((here / 'status.json').read_text())\n"
        "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': asked['apiVersion'], 'status': status}))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": f"client.authentication.k8s.io/{version}", "command": str(program)}}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_an_exec_plugin_with_a_token(server: RealServer, tmp_path: Path, version: str) -> None:
    user = plugin(tmp_path, {"token": token(server, "oarlock-ingestor")}, version)
    assert patiently(load(kubeconfig(server, tmp_path / "config", user))) == 200


def test_an_exec_plugin_with_a_certificate(server: RealServer, tmp_path: Path) -> None:
    crt, key = certificate(server.folder, "carol", "rowers")
    status = {"clientCertificateData": crt.read_text(), "clientKeyData": key.read_text()}
    assert patiently(load(kubeconfig(server, tmp_path / "config", plugin(tmp_path, status, "v1")))) == 200


def test_an_exec_plugin_is_run_once_and_again_when_its_token_ends(server: RealServer, tmp_path: Path) -> None:
    good = {"token": token(server, "oarlock-ingestor")}

    def runs() -> int:
        return len((tmp_path / "runs").read_text())

    async def run(config: ClusterConfig, ends_s: int) -> list[tuple[int, int]]:
        seen = []
        async with Client(config) as client:
            for _ in range(2):
                seen.append(((await list_nodes(client)).code, runs()))
            if time.time() >= ends_s:
                return []  # it ended before it could be used twice
            (tmp_path / "status.json").write_text(json.dumps(good))
            await asyncio.sleep(ends_s - time.time() + 0.1)
            seen.append(((await list_nodes(client)).code, runs()))
        return seen

    for life_s in (4, 30, 120):  # how long it takes to use it twice depends on how busy the machine is
        (tmp_path / "runs").write_text("")
        ends_s = int(time.time()) + life_s
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends_s))
        user = plugin(tmp_path, {**good, "expirationTimestamp": ends}, "v1")
        config = load(kubeconfig(server, tmp_path / "config", user))
        if seen := asyncio.run(run(config, ends_s)):
            break
    assert seen == [(200, 1), (200, 1), (200, 2)]


def test_a_projected_token_that_rotates(server: RealServer, tmp_path: Path) -> None:
    """As a kubelet lays it out, and changes it: the folder behind a link is exchanged. One client lives through it.

    The old token is bound to an object that goes, so that it is refused from then on.
    """
    account = tmp_path / "account"
    account.mkdir()

    def project(generation: int) -> str:
        inside = account / f"..{generation}"
        inside.mkdir()
        text = token(server, "oarlock-ingestor", secret=f"generation-{generation}")
        (inside / "token").write_text(text)
        (inside / "namespace").write_text(NAMESPACE)
        (inside / "ca.crt").write_bytes((server.folder / "certs" / "apiserver.crt").read_bytes())
        (account / "..new").symlink_to(inside.name)
        (account / "..new").replace(account / "..data")
        return text

    old = project(1)
    for name in ("token", "namespace", "ca.crt"):
        (account / name).symlink_to(Path("..data", name))
    host, _, port = server.url.removeprefix("https://").partition(":")
    environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    config = in_cluster(environment=environment, service_account=account)
    assert config.namespace == NAMESPACE
    assert patiently(config) == 200

    async def run() -> None:
        async with Client(config) as client:
            assert (await list_nodes(client)).code == 200
            new = project(2)
            assert new != old
            kubectl(server, "delete", "secret", "generation-1", "-n", NAMESPACE)
            ends_s = time.monotonic() + FORGOTTEN_S
            fixed = with_token(server, tmp_path, old)
            while await asyncio.to_thread(ask, fixed) != 401:
                assert time.monotonic() < ends_s, f"the old token is still good: {fixed.source}"
                assert (await list_nodes(client)).code == 200
                await asyncio.sleep(0.5)
            # The client still holds the old one, for it looks at the file once a minute: the 401 has it look again,
            # and what it reads is asked for once more at once.
            assert (await list_nodes(client)).code == 200
            answer = await client.create(PODS, NAMESPACE, b"{}")
            assert answer.code == 403, "let in as the account, which may not create pods"

    asyncio.run(asyncio.wait_for(run(), 600))


def with_token(server: RealServer, folder: Path, text: str) -> ClusterConfig:
    return load(kubeconfig(server, folder / "with-token", {"token": text}))
