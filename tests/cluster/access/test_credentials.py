"""Credentials that change while the process lives: token files, exec plugins, certificates."""

import asyncio
import json
import logging
import os
import socket
import ssl
import stat
import subprocess
import sys
import textwrap
import threading
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from aiohttp import web

from oarlock.cluster.access.config import from_kubeconfig
from oarlock.cluster.access.credentials import REREAD_S, Auth, ConfigError, FileCredentials, FixedCredentials
from oarlock.cluster.access.exec_plugin import ExecCredentials, ExecSpec, run_plugin
from oarlock.cluster.access.tls import Authorities, TlsOptions, tls_context
from oarlock.cluster.answer import NOT_SENT, Answer
from oarlock.cluster.http.transport import Transport
from tests import ROOT
from tests.cluster.client_helpers import (
    FakeTime,
    config_of,
    json_response,
    looped,
    serving,
    status_response,
    tunnelling,
)

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def token_of(auth):
    assert auth is not None
    return dict(auth.headers)["Authorization"].removeprefix("Bearer ")


def test_a_token_file_is_read_again_each_minute(tmp_path):
    time, path = FakeTime(), tmp_path / "token"
    path.write_text("one")
    credentials = FileCredentials(Auth(), token_path=path, clock=time)
    path.write_text("two")
    time.now_s += REREAD_S - 1
    assert token_of(credentials.current()) == "one"
    time.now_s += 1
    assert token_of(credentials.current()) == "two"


def test_a_token_file_that_vanishes_keeps_the_last_token(tmp_path, caplog):
    """While a rotation replaces the file it may be absent, or empty."""
    time, path = FakeTime(), tmp_path / "token"
    path.write_text("one")
    credentials = FileCredentials(Auth(), token_path=path, clock=time)
    path.unlink()
    time.now_s += REREAD_S
    with caplog.at_level(logging.WARNING):
        assert token_of(credentials.current()) == "one"
    assert "keeping the credentials read last" in caplog.text
    path.write_text("")
    time.now_s += REREAD_S
    assert token_of(credentials.current()) == "one"
    path.write_text("two")
    time.now_s += REREAD_S
    assert token_of(credentials.current()) == "two"


def test_unchanged_files_give_the_same_object(tmp_path):
    """The TLS context is kept per Auth: reading the same again must not make new connections."""
    time, path = FakeTime(), tmp_path / "token"
    path.write_text("one")
    credentials = FileCredentials(Auth(), token_path=path, clock=time)
    first = credentials.current()
    time.now_s += REREAD_S
    assert credentials.current() is first


@looped
async def test_a_401_reads_the_token_file_again(tmp_path):
    """A read is asked again with the new token; a write is not, but the next one carries it."""
    valid, seen = "two", []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.method, request.headers["Authorization"]))
        if request.headers["Authorization"] == f"Bearer {valid}":
            return json_response({})
        return status_response(401, "Unauthorized")

    path = tmp_path / "token"
    path.write_text("one")
    async with serving(handler) as url:
        credentials = FileCredentials(Auth(), token_path=path, clock=FakeTime())
        async with Transport(config_of(url, credentials=credentials)) as transport:
            assert (await transport.read("/x")).code == 401
            assert len(seen) == 1, "nothing new to try with"
            path.write_text("two")
            assert (await transport.read("/x")).code == 200
            valid = "three"
            path.write_text("three")
            assert (await transport.write("POST", "/x", b"{}")).code == 401
            assert (await transport.write("POST", "/x", b"{}")).code == 200
    assert [method for method, _ in seen] == ["GET", "GET", "GET", "POST", "POST"]
    assert [token for _, token in seen] == [f"Bearer {n}" for n in ("one", "one", "two", "two", "three")]


@looped
async def test_a_watch_refused_with_401_is_opened_with_the_new_token(tmp_path):
    async def handler(request: web.Request) -> web.Response:
        ok = request.headers["Authorization"] == "Bearer two"
        return json_response({}) if ok else status_response(401, "Unauthorized")

    path = tmp_path / "token"
    path.write_text("one")
    async with serving(handler) as url:
        credentials = FileCredentials(Auth(), token_path=path, clock=FakeTime())
        async with Transport(config_of(url, credentials=credentials)) as transport:
            path.write_text("two")
            credentials.suspect(credentials.current())
            async with transport.stream("/x", head_timeout_s=2) as opened:
                assert not isinstance(opened, Answer)


PLUGIN = """\
    #!/bin/sh
    echo run >> "$COUNT"
    printf '%s' "$KUBERNETES_EXEC_INFO" > "$COUNT.info"
    printf '%s|' "$@" > "$COUNT.args"
    cat "$ANSWER"
    """


class Plugin:
    """A real program with an answer that the test sets; counts its runs."""

    def __init__(self, folder: Path) -> None:
        self.path, self.answer, self.count = folder / "log-in", folder / "answer", folder / "count"
        self.set_script(textwrap.dedent(PLUGIN))
        self.says({"token": "t1"})

    def set_script(self, text: str) -> None:
        self.path.write_text(text)
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def says(self, status, api_version=V1, kind="ExecCredential") -> None:
        self.answer.write_text(json.dumps({"apiVersion": api_version, "kind": kind, "status": status}))

    @property
    def runs(self) -> int:
        return len(self.count.read_text().splitlines()) if self.count.exists() else 0

    def spec(self, api_version=V1, **more) -> ExecSpec:
        env = (("ANSWER", str(self.answer)), ("COUNT", str(self.count)))
        return ExecSpec(api_version, str(self.path), env=env, source="kubeconfig k", **more)


@pytest.fixture
def plugin(tmp_path):
    return Plugin(tmp_path)


@pytest.mark.parametrize("api_version", [V1, V1BETA1])
@looped
async def test_a_plugin_gives_a_token(plugin, api_version):
    plugin.says({"token": "t1"}, api_version)
    credentials = ExecCredentials(plugin.spec(api_version, args=("get", "token")), Auth((("A", "b"),)))
    assert credentials.current() is None
    auth = await credentials.fetch()
    assert auth.headers == (("A", "b"), ("Authorization", "Bearer t1"))
    assert credentials.current() is auth
    assert (plugin.runs, Path(f"{plugin.count}.args").read_text()) == (1, "get|token|")
    assert json.loads(Path(f"{plugin.count}.info").read_text()) == {
        "apiVersion": api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


async def good_for_ten_minutes(plugin):
    """A clock, and credentials with the token t1."""
    time = FakeTime(1_767_225_600.0)
    plugin.says({"token": "t1", "expirationTimestamp": "2026-01-01T00:10:00Z"})
    credentials = ExecCredentials(plugin.spec(), wall_clock=time)
    await credentials.fetch()
    return time, credentials


@looped
async def test_a_plugin_is_run_again_shortly_before_the_end(plugin):
    """Of what lives so shortly that nobody asked in its last fifth."""
    time, credentials = await good_for_ten_minutes(plugin)
    time.now_s += 539
    assert token_of(credentials.current()) == "t1"
    time.now_s += 52
    assert credentials.current() is None
    plugin.says({"token": "t2", "expirationTimestamp": "2026-01-01T00:20:00Z"})
    assert token_of(await credentials.fetch()) == "t2"
    assert plugin.runs == 2


async def renewed(credentials):
    """The end of what ``current`` has begun."""
    await asyncio.wait_for(credentials._renewal, 30)


@looped
async def test_nobody_waits_for_a_plugin_while_what_it_printed_is_good(plugin):
    time, credentials = await good_for_ten_minutes(plugin)
    gate = plugin.path.with_name("gate")
    os.mkfifo(gate)
    plugin.set_script(f"#!/bin/sh\ncat {gate} >/dev/null\n" + textwrap.dedent(PLUGIN).partition("\n")[2])
    plugin.says({"token": "t2", "expirationTimestamp": "2026-01-01T00:20:00Z"})
    time.now_s += 541
    for _ in range(3):
        assert token_of(credentials.current()) == "t1"
        await asyncio.sleep(0)
    await asyncio.to_thread(gate.write_text, "go")
    await renewed(credentials)
    assert token_of(credentials.current()) == "t2"
    assert plugin.runs == 2


@looped
async def test_a_renewal_that_fails_is_tried_again_and_at_last_waited_for(plugin, caplog):
    time, credentials = await good_for_ten_minutes(plugin)
    plugin.set_script("#!/bin/sh\necho run >> $COUNT; echo 'log in first' >&2; exit 3\n")
    time.now_s += 541
    for after_s, runs in ((0, 2), (14, 2), (2, 3)):
        time.now_s += after_s
        assert token_of(credentials.current()) == "t1"
        await renewed(credentials)
        assert plugin.runs == runs
    assert caplog.text.count("failed with code 3: log in first") == 2
    time.now_s += 34
    assert credentials.current() is None
    with pytest.raises(ConfigError, match="log in first"):
        await credentials.fetch()


@looped
async def test_a_plugin_that_keeps_what_it_fetched_is_not_run_for_every_request(plugin):
    time, credentials = await good_for_ten_minutes(plugin)
    auth = credentials.current()
    time.now_s += 541
    for _ in range(5):
        assert credentials.current() is auth
        await renewed(credentials)
    assert plugin.runs == 2
    plugin.says({"token": "t0", "expirationTimestamp": "2026-01-01T00:08:00Z"})
    time.now_s += 16
    assert credentials.current() is auth
    await renewed(credentials)
    assert plugin.runs == 3
    assert credentials.current() is auth, "what ends before it takes nobody's place"


@looped
async def test_a_plugin_runs_once_for_all_who_wait(plugin):
    credentials = ExecCredentials(plugin.spec())
    fetched = await asyncio.gather(*(credentials.fetch() for _ in range(20)))
    assert {token_of(auth) for auth in fetched} == {"t1"}
    assert plugin.runs == 1


@looped
async def test_a_401_runs_the_plugin_again_but_not_for_every_request(plugin):
    time = FakeTime(1_767_225_600.0)
    valid = "t1"

    async def handler(request: web.Request) -> web.Response:
        ok = request.headers["Authorization"] == f"Bearer {valid}"
        return json_response({}) if ok else status_response(401, "Unauthorized")

    async with serving(handler) as url:
        config = config_of(url, credentials=ExecCredentials(plugin.spec(), wall_clock=time))
        async with Transport(config) as transport:
            assert (await transport.read("/x")).code == 200
            valid = "t2"
            plugin.says({"token": "t2"})
            assert (await transport.read("/x")).code == 401
            assert plugin.runs == 1, "it has only just been run"
            time.now_s += 6
            assert (await transport.read("/x")).code == 200
            assert plugin.runs == 2
            valid = "revoked"
            time.now_s += 6
            for _ in range(5):
                assert (await transport.read("/x")).code == 401
            assert plugin.runs == 3


@looped
async def test_a_plugin_that_fails_later_means_not_sent(plugin):
    """The caller gets an answer, not an exception, and it says what the plugin said."""
    plugin.set_script("#!/bin/sh\necho 'log in first' >&2; exit 3\n")
    config = config_of("http://127.0.0.1:1", credentials=ExecCredentials(plugin.spec()))
    async with Transport(config) as transport:
        answer = await transport.write("POST", "/x", b"{}")
        async with transport.stream("/x", head_timeout_s=1) as opened:
            assert opened.code == NOT_SENT
    assert answer.code == NOT_SENT
    assert answer.error.endswith("failed with code 3: log in first")


@looped
async def test_a_plugin_is_run_off_the_main_thread():
    """The product's loop lives in a daemon thread; the plugin must work there."""
    done: list[str] = []

    @looped
    async def in_thread():
        printed = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t"}})
        spec = ExecSpec(V1, "echo", (printed,))
        done.append(token_of(await ExecCredentials(spec).fetch()))

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert done == ["t"]


@pytest.mark.parametrize(
    ("status", "kind", "line"),
    [
        pytest.param(None, "ExecCredential", "without a status", id="no status"),
        pytest.param({}, "ExecCredential", "neither a token nor a client certificate", id="nothing"),
        pytest.param({"clientCertificateData": "x"}, "ExecCredential", "without its key", id="no key"),
        pytest.param({"token": "t"}, "Secret", "printed client.authentication.k8s.io/v1 Secret", id="kind"),
        pytest.param({"token": 7}, "ExecCredential", "with a wrong field: Expected `str", id="wrong type"),
        pytest.param({"token": "t", "expirationTimestamp": "soon"}, "ExecCredential", "wrong field", id="expiry"),
    ],
)
def test_bad_answers_of_a_plugin(plugin, status, kind, line):
    plugin.says(status, kind=kind)
    with pytest.raises(ConfigError) as raised:
        run_plugin(plugin.spec(), Auth())
    assert str(raised.value).startswith(f"the exec plugin '{plugin.path}' of the kubeconfig k")
    assert line in str(raised.value)


def test_a_plugin_of_the_wrong_version(plugin):
    plugin.says({"token": "t"}, V1BETA1)
    with pytest.raises(ConfigError, match=r"asks for client\.authentication\.k8s\.io/v1 ExecCredential"):
        run_plugin(plugin.spec(), Auth())


@pytest.mark.parametrize("printed", [b"\xff", b'{"kind":"\xff"}', b'{"a":' * 100_000], ids=["binary", "text", "deep"])
def test_a_plugin_that_prints_what_cannot_be_read(plugin, printed):
    plugin.answer.write_bytes(printed)
    with pytest.raises(ConfigError, match="printed something that is not JSON"):
        run_plugin(plugin.spec(), Auth())


def test_what_a_plugin_prints_is_not_repeated(plugin):
    plugin.answer.write_text("token: s3cret")
    with pytest.raises(ConfigError, match="printed something that is not JSON") as raised:
        run_plugin(plugin.spec(), Auth())
    assert "s3cret" not in str(raised.value)


def test_a_plugin_that_is_missing_or_hangs(plugin, monkeypatch):
    with pytest.raises(ConfigError, match="'no-such-log-in' of the kubeconfig was not found: get it from there"):
        run_plugin(ExecSpec(V1, "no-such-log-in", install_hint="get it\nfrom there"), Auth())
    monkeypatch.setattr("oarlock.cluster.access.exec_plugin.RUN_TIMEOUT_S", 0.1)
    plugin.set_script("#!/bin/sh\nexec sleep 20\n")
    with pytest.raises(ConfigError, match="did not end within 0 s"):
        run_plugin(plugin.spec(), Auth())


@looped
async def test_a_plugin_of_a_kubeconfig(plugin, tmp_path):
    """Relative command, env, cluster info, and a client certificate of the user beside it."""
    content = {
        "current-context": "here",
        "clusters": [
            {
                "name": "c",
                "cluster": {
                    "server": "https://api:6443",
                    "tls-server-name": "api",
                    "insecure-skip-tls-verify": True,
                    "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
                },
            }
        ],
        "users": [
            {
                "name": "u",
                "user": {
                    "exec": {
                        "apiVersion": V1,
                        "command": "./log-in",
                        "args": ["a"],
                        "env": [
                            {"name": "ANSWER", "value": str(plugin.answer)},
                            {"name": "COUNT", "value": str(plugin.count)},
                        ],
                        "provideClusterInfo": True,
                        "interactiveMode": "IfAvailable",
                    }
                },
            }
        ],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(content))
    config = from_kubeconfig([tmp_path / "config"])
    assert token_of(await config.credentials.fetch()) == "t1"
    assert json.loads(Path(f"{plugin.count}.info").read_text())["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "https://api:6443",
            "tls-server-name": "api",
            "insecure-skip-tls-verify": True,
            "config": {"audience": "x"},
        },
    }


class Certificates:
    """A throw-away authority, a server certificate for 127.0.0.1, and client certificates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._openssl("req", "-x509", *self._key("ca"), "-subj", "/CN=test-ca", "-days", "2", "-out", "ca.crt")
        self.ca = (folder / "ca.crt").read_bytes()
        self.sign("server", "subjectAltName=IP:127.0.0.1,DNS:api.test")

    def _key(self, name: str) -> list[str]:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def sign(self, name: str, extension: str = "extendedKeyUsage=clientAuth") -> tuple[bytes, bytes]:
        """(certificate, key) for CN=name."""
        (self.folder / "ext").write_text(extension)
        self._openssl("req", "-new", *self._key(name), "-subj", f"/CN={name}", "-out", f"{name}.csr")
        signing = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext"]
        self._openssl("x509", "-req", "-in", f"{name}.csr", *signing, "-out", f"{name}.crt")
        return (self.folder / f"{name}.crt").read_bytes(), (self.folder / f"{name}.key").read_bytes()

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.folder / "ca.crt"))
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


async def who(request: web.Request) -> web.Response:
    """Answers with the common name of the client's certificate."""
    assert request.transport is not None
    subject = request.transport.get_extra_info("peercert")["subject"]
    return json_response({"cn": dict(pair for part in subject for pair in part)["commonName"]})


@looped
async def test_a_client_certificate(certificates, tmp_path):
    """From a kubeconfig with files, over TLS with a private authority, both sides verified."""
    certificates.sign("ann")
    async with serving(who, certificates.server_context()) as url:
        user = {"client-certificate": "ann.crt", "client-key": "ann.key"}
        content = {
            "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": "ca.crt"}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        path = certificates.folder / "config"
        path.write_text(yaml.safe_dump(content))
        async with Transport(from_kubeconfig([path])) as transport:
            answer = await transport.read("/who")
    assert answer.object() == {"cn": "ann"}


@looped
async def test_a_client_certificate_through_a_proxy(certificates):
    """TLS inside the tunnel: the proxy sees where to, never what."""
    credentials = FixedCredentials(Auth((), *certificates.sign("ann")))
    seen: list[str] = []
    async with (
        serving(who, certificates.server_context()) as url,
        tunnelling(seen) as proxy,
        Transport(
            config_of(url, tls=TlsOptions(ca_pem=certificates.ca), credentials=credentials, proxy=proxy)
        ) as transport,
    ):
        answers = [await transport.write("POST", "/who", b"{}") for _ in range(2)]
    assert [answer.body for answer in answers] == [b'{"cn":"ann"}'] * 2
    assert seen == [f"CONNECT {url.removeprefix('https://')} HTTP/1.1"], "one tunnel for both"


def asking(folder: Path, url: str) -> Transport:
    """As ann, who trusts the authorities in the file trusted.crt."""
    content = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": "trusted.crt"}}],
        "users": [{"name": "u", "user": {"client-certificate": "ann.crt", "client-key": "ann.key"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    (folder / "config").write_text(yaml.safe_dump(content))
    return Transport(from_kubeconfig([folder / "config"]))


@looped
async def test_an_authority_that_is_replaced_in_its_file_needs_no_restart(certificates, tmp_path, caplog):
    """As when the authority of a cluster is exchanged: the file is read again once a server does not fit."""
    certificates.sign("ann")
    other = Certificates(tmp_path)
    other.sign("ann")
    trusted = tmp_path / "trusted.crt"
    trusted.write_bytes(certificates.ca)
    async with serving(who, other.server_context()) as url, asking(tmp_path, url) as transport:
        refused = await transport.read("/who")
        assert (refused.code, "certificate verify failed" in refused.message) == (NOT_SENT, True)
        for rubbish in (b"", b"rubbish"):
            trusted.write_bytes(rubbish)
            assert (await transport.read("/who")).code == NOT_SENT
        trusted.write_bytes(other.ca)
        answers = [await transport.read("/who") for _ in range(2)]
    assert answers[-1].object() == {"cn": "ann"}
    told = [record.getMessage() for record in caplog.records]
    assert [each.partition(": ")[0] for each in told] == ["keeping the certificate authority read last"] * 2
    assert f"{trusted} is empty" in told[0]


def test_an_authority_in_a_file_is_read_again_each_minute(certificates, tmp_path):
    time, path = FakeTime(), tmp_path / "ca.crt"
    path.write_bytes(certificates.ca)
    authorities = Authorities(TlsOptions(ca_pem=certificates.ca, ca_path=path), clock=time)
    before = authorities.current()
    path.write_bytes(certificates.ca * 2)
    time.now_s += REREAD_S - 1
    assert authorities.current() is before
    time.now_s += 1
    assert authorities.current().ca_pem == certificates.ca * 2
    assert authorities.current() is authorities.current()


def test_an_empty_file_of_authorities_does_not_mean_those_of_the_system(tmp_path):
    (tmp_path / "trusted.crt").write_bytes(b"\n")
    with pytest.raises(ConfigError, match=r"the certificate authority of the kubeconfig: .*trusted\.crt is empty"):
        asking(tmp_path, "https://127.0.0.1:1")


def answering(listening: socket.socket, context: ssl.SSLContext) -> None:
    """A server that sends the alert where it refuses a certificate, as those of asyncio do not."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        try:
            with context.wrap_socket(connection, server_side=True) as secure:
                secure.recv(65_536)
                secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        except OSError:
            connection.close()


@looped
async def test_a_certificate_that_the_server_refuses_is_told_and_read_again_at_once(certificates, tmp_path):
    """An expired one, say: the server ends the connection, and no 401 is ever answered."""
    Certificates(tmp_path).sign("ann")
    (tmp_path / "trusted.crt").write_bytes(certificates.ca)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answering, args=(listening, certificates.server_context()), daemon=True).start()
        async with asking(tmp_path, f"https://127.0.0.1:{listening.getsockname()[1]}") as transport:
            refused = await transport.read("/who")
            assert "the server ends TLS with the alert 'unknown ca': see our client certificate" in refused.message
            for file, content in zip(("ann.crt", "ann.key"), certificates.sign("ann"), strict=True):
                (tmp_path / file).write_bytes(content)
            assert (await transport.read("/who")).code == 200
        listening.shutdown(socket.SHUT_RDWR)


@looped
async def test_a_certificate_of_a_plugin_is_replaced_when_it_ends(certificates, plugin):
    """Connections made with the old certificate are not used for the new one."""
    time = FakeTime(1_767_225_600.0)

    def give(name: str) -> None:
        certificate, key = certificates.sign(name)
        end = datetime.fromtimestamp(time.now_s + 600, UTC).isoformat()
        plugin.says(
            {
                "clientCertificateData": certificate.decode(),
                "clientKeyData": key.decode(),
                "expirationTimestamp": end,
            }
        )

    give("first")
    credentials = ExecCredentials(plugin.spec(), wall_clock=time)
    async with serving(who, certificates.server_context()) as url:
        config = config_of(url, tls=TlsOptions(ca_pem=certificates.ca), credentials=credentials)
        async with Transport(config) as transport:
            names = [(await transport.read("/")).object()["cn"] for _ in range(2)]
            give("second")
            time.now_s += 601
            names.append((await transport.read("/")).object()["cn"])
    assert names == ["first", "first", "second"]


@looped
async def test_a_certificate_of_a_plugin_that_cannot_be_read_is_asked_for_again(certificates, plugin):
    time = FakeTime(1_767_225_600.0)
    certificate, key = certificates.sign("first")
    given = {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
    plugin.says({**given, "clientKeyData": "no key"})
    async with serving(who, certificates.server_context()) as url:
        credentials = ExecCredentials(plugin.spec(), wall_clock=time)
        config = config_of(url, tls=TlsOptions(ca_pem=certificates.ca), credentials=credentials)
        async with Transport(config) as transport:
            assert (await transport.read("/")).code == NOT_SENT
            plugin.says(given)
            assert (await transport.read("/")).code == NOT_SENT, "it has only just been run"
            time.now_s += 6
            assert (await transport.read("/")).code == NOT_SENT, "this shows that it cannot be read"
            assert (await transport.read("/")).object()["cn"] == "first"


@pytest.mark.parametrize(
    ("options", "ok"),
    [
        pytest.param({}, False, id="an unknown authority"),
        pytest.param({"ca": True}, True, id="the right authority"),
        pytest.param({"ca": True, "server_name": "api.test"}, True, id="another name, in the certificate"),
        pytest.param({"ca": True, "server_name": "evil.test"}, False, id="another name, not in it"),
        pytest.param({"insecure": True}, True, id="not verified at all"),
    ],
)
@looped
async def test_the_server_is_verified(certificates, options, ok):
    certificate, key = certificates.sign("ann")
    credentials = FixedCredentials(Auth((), certificate, key))
    tls = TlsOptions(
        ca_pem=certificates.ca if options.get("ca") else b"",
        insecure=options.get("insecure", False),
        server_name=options.get("server_name", ""),
    )
    async with (
        serving(who, certificates.server_context()) as url,
        Transport(config_of(url, tls=tls, credentials=credentials)) as transport,
    ):
        answer = await transport.read("/")
    assert answer.code == (200 if ok else NOT_SENT), answer.error
    if not ok:
        assert "certificate" in answer.error.lower()


@looped
async def test_connections_resume_the_tls_session_of_an_earlier_one(certificates):
    """Of the same name and the same certificate only: nothing is verified again when a session is resumed."""
    context = certificates.server_context()
    certificate, key = certificates.sign("ann")
    options = TlsOptions(ca_pem=certificates.ca)
    async with serving(who, context) as url:
        ours, anew = tls_context(options, certificate, key), tls_context(options, certificate, key)
        seen = []
        for name, tls in (("127.0.0.1", ours), ("127.0.0.1", ours), ("api.test", ours), ("127.0.0.1", anew)):
            reader, writer = await asyncio.open_connection(*address_of(url), ssl=tls, server_hostname=name)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert b'"cn":"ann"' in await reader.read()
            seen.append(writer.get_extra_info("ssl_object").session_reused)
            writer.close()
    assert seen == [False, True, False, False]


@looped
async def test_a_server_that_does_not_know_a_session_is_met_in_full(certificates):
    certificate, key = certificates.sign("ann")
    tls, seen = tls_context(TlsOptions(ca_pem=certificates.ca), certificate, key), []
    for _ in range(2):  # a new server, with new keys for its tickets
        async with serving(who, certificates.server_context()) as url:
            for _ in range(2):
                reader, writer = await asyncio.open_connection(*address_of(url), ssl=tls, server_hostname="127.0.0.1")
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert b'"cn":"ann"' in await reader.read()
                seen.append(writer.get_extra_info("ssl_object").session_reused)
                writer.close()
    assert seen == [False, True, False, True]


@looped
async def test_after_a_greeting_a_wave_of_writes_resumes_one_session(certificates):
    """Of all its connections only the first, which sent nothing before, is a full handshake for the server."""
    resumed, wave = [], asyncio.Barrier(5)

    async def handler(request: web.Request) -> web.StreamResponse:
        await wave.wait()  # so each write needs a connection of its own
        resumed.append(request.transport.get_extra_info("ssl_object").session_reused)
        return json_response({})

    certificate, key = certificates.sign("ann")
    tls, credentials = TlsOptions(ca_pem=certificates.ca), FixedCredentials(Auth((), certificate, key))
    async with (
        serving(handler, certificates.server_context()) as url,
        Transport(config_of(url, tls=tls, credentials=credentials)) as transport,
    ):
        await transport.greet()
        latest = transport._tls._latest["127.0.0.1"]
        while latest.session is None or not latest.session.has_ticket:
            await asyncio.sleep(0.001)
        answers = await asyncio.gather(*(transport.write("POST", f"/{each}") for each in range(5)))
    assert [answer.code for answer in answers] == 5 * [200]
    assert sorted(resumed) == [False, True, True, True, True]


@looped
async def test_a_greeting_says_nothing_of_what_goes_wrong(certificates):
    credentials = FixedCredentials(Auth((), *certificates.sign("ann")))
    async with serving(who, certificates.server_context()) as url:
        pass
    async with Transport(config_of(url, tls=TlsOptions(), credentials=credentials)) as transport:
        await transport.greet()
        assert (await transport.write("POST", "/")).code == NOT_SENT


def address_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def test_certificates_that_cannot_be_used(certificates):
    certificate, key = certificates.sign("ann")
    _, other_key = certificates.sign("bob")
    with pytest.raises(ConfigError, match="certificate authority of the cluster is not PEM"):
        tls_context(TlsOptions(ca_pem=b"rubbish"))
    for bad_certificate, bad_key in ((certificate, other_key), (b"rubbish", key), (certificate, b"")):
        with pytest.raises(ConfigError, match="the client certificate and its key cannot be used"):
            tls_context(TlsOptions(), bad_certificate, bad_key)
    config = config_of("https://x", credentials=FixedCredentials(Auth((), certificate, other_key)))
    with pytest.raises(ConfigError):
        Transport(config)


ENCRYPTED_KEY = """
import os, sys
from pathlib import Path
from oarlock.cluster.access.credentials import ConfigError
from oarlock.cluster.access.tls import TlsOptions, tls_context
os.open(sys.argv[1], os.O_RDWR)  # a session without a terminal takes the first it opens
try:
    tls_context(TlsOptions(), Path(sys.argv[2]).read_bytes(), Path(sys.argv[3]).read_bytes())
except ConfigError as error:
    print(error)
"""


def test_an_encrypted_key_does_not_ask_for_its_password(certificates):
    """Not even where there is a terminal to ask on: OpenSSL would wait there for ever."""
    folder = certificates.folder
    certificates.sign("ann")
    encrypt = ["openssl", "ec", "-in", "ann.key", "-aes128", "-passout", "pass:x", "-out", "locked.key"]
    subprocess.run(encrypt, cwd=folder, check=True, capture_output=True)
    ours, theirs = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", ENCRYPTED_KEY, os.ttyname(theirs), folder / "ann.crt", folder / "locked.key"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert "the key must not be encrypted" in done.stdout
