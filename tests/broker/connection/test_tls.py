"""TLS with certificates on both sides, against a server that speaks nothing else."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from redis.exceptions import ConnectionError as RedisConnectionError

from oarlock.broker.connection.client import BadRedisUrl, connect
from oarlock.broker.connection.tls import TlsFiles
from oarlock.cli import cli
from oarlock.workers.process.settings import Settings
from oarlock.workers.rq.client import open_rq_client
from tests.redis.certificates import Certificates
from tests.redis.real_servers import PASSWORDS, RealServer, free_port, started


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[RealServer]:
    port = free_port()
    server = RealServer(tmp_path_factory.mktemp("encrypted"), port=port, **certificates.options(port))
    try:
        started(server)
        yield server
    finally:
        server.kill()


def call(*words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, words, env=env or {}, prog_name="oarlock")


def flags(files: TlsFiles) -> list[str]:
    given = {"ca": files.ca, "cert": files.cert, "key": files.key}
    return [word for name, path in given.items() if path for word in (f"--redis-tls-{name}", path)]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_both_sides_prove_who_they_are(encrypted: RealServer, certificates: Certificates, host: str) -> None:
    client = connect(encrypted.url("worker", "rediss", host), tls=certificates.files)
    assert client.ping()
    sock = client.connection_pool.get_connection()._sock  # type: ignore[attr-defined]
    assert isinstance(sock, ssl.SSLSocket)
    assert sock.getpeercert()["subjectAltName"] == (("DNS", "localhost"), ("IP Address", "127.0.0.1"))  # type: ignore[index]


def test_rq_has_the_same_files(encrypted: RealServer, certificates: Certificates) -> None:
    files = certificates.files
    tls = {"redis_tls_ca": files.ca, "redis_tls_cert": files.cert, "redis_tls_key": files.key}
    client = open_rq_client(Settings(redis_url=encrypted.url("worker", "rediss"), **tls))  # type: ignore[arg-type]
    client.sadd("rq:test", "x")
    assert client.smembers("rq:test") == {b"x"}


def test_a_command_has_them_from_flags_and_from_the_environment(
    encrypted: RealServer, certificates: Certificates
) -> None:
    url = encrypted.url("metrics", "rediss")
    by_flag = call("queue", "--redis", url, *flags(certificates.files))
    files = certificates.files
    names = {"OARLOCK_REDIS_TLS_CA": files.ca, "OARLOCK_REDIS_TLS_CERT": files.cert, "OARLOCK_REDIS_TLS_KEY": files.key}
    by_environment = call("queue", env={"OARLOCK_REDIS_URL": url, **names})
    for result in (by_flag, by_environment):
        assert "has no oarlock epoch" in result.stderr, result.stderr


def test_what_is_not_proved_is_refused_in_one_line(
    encrypted: RealServer, certificates: Certificates, tmp_path: Path
) -> None:
    of, url = certificates, encrypted.url("metrics", "rediss")
    cases = [
        (url, TlsFiles("", of.client, of.client_key), "name the authority that signed its certificate: --redis-tls-ca"),
        (url, TlsFiles(of.other_ca, of.client, of.client_key), "name the authority that signed its certificate"),
        (url, TlsFiles(of.ca), "a certificate of ours"),
        (url, TlsFiles(of.ca, of.stranger, of.stranger_key), "certificate"),
        (encrypted.url("metrics"), TlsFiles(), "does it speak TLS (rediss://)"),
        (encrypted.url("metrics"), of.files, "write rediss:// in place of redis://"),
    ]
    for given, files, told in cases:
        result = call("queue", "--redis", given, *flags(files))
        (line,) = result.stderr.strip().splitlines()
        assert (result.exit_code, told in line, PASSWORDS["metrics"] in line) == (2, True, False), line


def test_a_server_of_another_name_is_refused(certificates: Certificates, tmp_path: Path) -> None:
    port = free_port()
    options = certificates.options(port) | {
        "tls_cert_file": certificates.elsewhere,
        "tls_key_file": certificates.elsewhere_key,
    }
    server = RealServer(tmp_path, port=port, **options)
    try:
        started(server)
        for host, told in (("localhost", "write that one into the URL"), ("127.0.0.1", "it is not for this address")):
            result = call("queue", "--redis", server.url("metrics", "rediss", host), *flags(certificates.files))
            assert result.exit_code == 2
            assert told.replace("it is", "is") in result.stderr or told in result.stderr, result.stderr
        with pytest.raises(RedisConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            connect(server.url("worker", "rediss"), tls=certificates.files).ping()
    finally:
        server.kill()


def test_files_that_cannot_be_used_are_named(certificates: Certificates, tmp_path: Path) -> None:
    of, text = certificates, tmp_path / "text"
    text.write_text("not a certificate\n")
    cases = [
        (TlsFiles(str(tmp_path / "absent")), f"--redis-tls-ca '{tmp_path}/absent' cannot be read: No such file"),
        (TlsFiles(str(text)), f"--redis-tls-ca '{text}' holds no certificate"),
        (TlsFiles(of.ca, str(text), of.client_key), f"--redis-tls-cert '{text}' with --redis-tls-key"),
        (TlsFiles(of.ca, of.client, of.server_key), "the unencrypted key made for it"),
        (TlsFiles(of.ca, of.client), f"--redis-tls-cert '{of.client}' cannot be used"),
        (TlsFiles(of.ca, "", of.client_key), "needs its certificate"),
        (TlsFiles(of.ca, of.client, str(tmp_path / "gone")), "gone' cannot be read"),
    ]
    for files, told in cases:
        with pytest.raises(BadRedisUrl) as caught:
            connect("rediss://127.0.0.1:1/0", tls=files)
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)
        for command in ("queue", "worker", "ingest"):
            result = call(command, "--redis", "rediss://127.0.0.1:1/0", *flags(files), *_kubeconfig(command, tmp_path))
            assert (result.exit_code, result.stderr.count("\n")) == (2, 1), (command, result.stderr)
            assert told in result.stderr


def test_an_encrypted_key_is_not_asked_about_at_the_terminal(certificates: Certificates) -> None:
    locked = certificates.folder / "locked.key"
    certificates._openssl("ec", "-in", certificates.client_key, "-aes256", "-passout", "pass:word", "-out", str(locked))
    with pytest.raises(BadRedisUrl, match="the key is encrypted"):
        TlsFiles(certificates.ca, certificates.client, str(locked)).check()


def _kubeconfig(command: str, folder: Path) -> list[str]:
    if command == "queue":
        return []
    path = folder / "kubeconfig"
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}"
    )
    return ["--kubeconfig", str(path)]
