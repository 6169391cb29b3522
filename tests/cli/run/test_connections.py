"""A Redis or a kubeconfig that cannot be used: exit 2, one line that names what was given and the mend."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from oarlock.cli.options import process_options
from oarlock.sandbox.host import free_port
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sandbox.up.state_dir import StateDir
from tests.cli.cli_helpers import call, problems

COMMANDS = [["queue"], ["locks"], ["expectations"], ["get", "pods"], ["explain", "a/b"], ["requeue", "a/b"], ["epoch"]]

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
current-context: elsewhere
"""


@pytest.fixture
def closed_port() -> int:
    return free_port()


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG.replace("elsewhere", "here"))
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_redis_that_is_absent(command: list[str], closed_port: int) -> None:
    result = call(*command, "--redis", f"redis://u:hidden@127.0.0.1:{closed_port}/0")
    assert result.exit_code == 2
    (line,) = problems(result)
    assert f"--redis: no Redis answers at 127.0.0.1:{closed_port} (Connection refused); is it running" in line
    assert "hidden" not in line


@pytest.mark.parametrize("command", ["worker", "ingest"])
def test_a_process_waits_briefly_for_its_resolver(
    command: str, kubeconfig: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(process_options, "resolve_briefly", lambda: told.append("briefly"))
    monkeypatch.setattr(process_options, "open_redis", lambda *_, **__: told.append("its first lookup"))
    call(command, "--redis", f"redis://127.0.0.1:{closed_port}/0", "--kubeconfig", str(kubeconfig))
    assert told[:2] == ["briefly", "its first lookup"]


@pytest.mark.parametrize("command", [["worker"], ["ingest"]], ids=" ".join)
def test_a_redis_that_is_absent_for_processes(command: list[str], closed_port: int, kubeconfig: Path) -> None:
    url = f"redis://127.0.0.1:{closed_port}/0"
    result = call(*command, "--kubeconfig", str(kubeconfig), env={"OARLOCK_REDIS_URL": url})
    assert result.exit_code == 2
    (line,) = problems(result)
    assert f"OARLOCK_REDIS_URL: no Redis answers at 127.0.0.1:{closed_port}" in line


@pytest.mark.parametrize(
    ("url", "told"),
    [
        pytest.param("redis://admin:wrong@127.0.0.1:{port}/0", "refuses the user or password", id="wrong password"),
        pytest.param("redis://nobody:wrong@127.0.0.1:{port}/0", "refuses the user or password", id="unknown user"),
        pytest.param("redis://127.0.0.1:{port}/0", "(Authentication required); put the right", id="no password"),
        pytest.param("redis://admin:{password}@127.0.0.1:{port}/99", "use database 0", id="no such database"),
        pytest.param("http://127.0.0.1:{port}", "it looks like redis://user:password@host:6379/0", id="another scheme"),
        pytest.param("redis://u:secret@127.0.0.1:port/0", "it looks like redis://", id="a word for a port"),
        pytest.param(
            "redis://u:secret@no-such-host.invalid:1/0", "no Redis answers at no-such-host.invalid:1", id="no such host"
        ),
        pytest.param("unix:///no/such/socket", "no Redis answers at /no/such/socket", id="no such socket"),
        pytest.param(
            "redis://ingestor:{ingestor}@127.0.0.1:{port}/0", "has no oarlock epoch; start an ingestor", id="no epoch"
        ),
    ],
)
def test_a_redis_url_that_leads_nowhere(server: EmbeddedRedis, url: str, told: str) -> None:
    secrets = {user: server.url(user).split(":")[2].partition("@")[0] for user in ("admin", "ingestor")}
    full = url.format(port=server.port, password=secrets["admin"], ingestor=secrets["ingestor"])
    result = call("queue", "--redis", full)
    assert result.exit_code == 2
    (line,) = problems(result)
    assert told in line
    assert "--redis" in line
    assert not any(secret in line for secret in (*secrets.values(), "secret@", "wrong"))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "", id="no Redis"),
        pytest.param(
            b"-ERR max number of clients reached\r\n",
            "(max number of clients reached); raise its maxclients, or end connections that nobody needs",
            id="no room for one more client",
        ),
    ],
)
def test_a_server_that_does_not_serve_us(said: bytes, told: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        result = call("queue", "--redis", f"redis://127.0.0.1:{port}/0")
        thread.join(5)
    assert result.exit_code == 2
    (line,) = problems(result)
    assert f"127.0.0.1:{port}" in line
    assert told in line


def test_a_state_dir_whose_up_is_gone(tmp_path: Path) -> None:
    StateDir(tmp_path).write_redis_url("redis://127.0.0.1:1/0")
    result = call("queue", "--state-dir", str(tmp_path))
    assert result.exit_code == 2
    assert problems(result) == [f"oarlock: --state-dir {tmp_path}: its `oarlock up` is gone; start one there again"]


@pytest.mark.parametrize("command", ["worker", "ingest"])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(KUBECONFIG, "no context named 'elsewhere'; there are: here", id="lacks its context"),
        pytest.param("clusters: [", "is not valid YAML at line", id="broken"),
        pytest.param(None, "kubeconfig", id="absent"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(
    server: EmbeddedRedis, tmp_path: Path, command: str, text: str | None, told: str
) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    result = call(command, "--redis", server.url("worker"), "--kubeconfig", str(path))
    assert result.exit_code == 2
    (line,) = problems(result)
    assert told in line
    assert str(path) in line


def test_a_setting_that_is_no_number(server: EmbeddedRedis, kubeconfig: Path) -> None:
    result = call(
        *("worker", "--redis", server.url("worker"), "--kubeconfig", str(kubeconfig)), env={"OARLOCK_LEASE_MS": "long"}
    )
    assert result.exit_code == 2
    (line,) = problems(result)
    assert "OARLOCK_LEASE_MS='long' is not a" in line


@pytest.mark.parametrize(
    ("scheme", "behind", "said"),
    [
        ("redis+sentinel", "/mymaster/0", "no Sentinel is there: give the port of one, usually 26379, or redis://"),
        ("redis+cluster", "/", "it is no cluster: write redis:// in place of redis+cluster://"),
    ],
)
def test_a_server_that_is_no_sentinel_and_no_cluster(scheme: str, behind: str, said: str, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server:
        login = server.url("admin").removeprefix("redis://").partition("/")[0]
        result = call("queue", "--redis", f"{scheme}://{login}{behind}")
    assert result.exit_code == 2
    (line,) = problems(result)
    assert said in line
    assert login.partition("@")[0].partition(":")[2] not in line
