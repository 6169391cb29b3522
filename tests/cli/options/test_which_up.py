"""Which `oarlock up` is asked where no option says, and that its name is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.cli import logs
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sandbox.up import state_dir
from oarlock.sandbox.up.state_dir import PREFIX, StateDir
from oarlock.workers.supervisor import ingest_command, worker_command
from tests.cli.cli_helpers import call, problems

RUNNING = """
import sys
from pathlib import Path
from oarlock.sandbox.up.state_dir import StateDir
state = StateDir.take(Path(sys.argv[1]) if sys.argv[1] else None)
if sys.argv[2]:
    state.write_redis_url(sys.argv[2])
    state.kubeconfig.write_text("{}")
print(state.root, flush=True)
sys.stdin.read()
state.clear()
"""
"""What an `oarlock up` does for those who look for it."""

Start = Callable[..., StateDir]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Two; each is recognised by its epoch, 1 and 2."""
    folder = tmp_path_factory.mktemp("redis")
    with EmbeddedRedis(folder / "1") as first, EmbeddedRedis(folder / "2") as second:
        for number, server in enumerate((first, second), 1):
            client = connect(server.url("admin"))
            epoch.bootstrap(client, number)
            client.close()
        yield [first.url("admin"), second.url("admin")]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """start(URL, DIR): one in a directory of its own, in a temporary one where none is given."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    processes: list[subprocess.Popen[str]] = []

    def up(url: str, given: Path | None = None) -> StateDir:
        process = subprocess.Popen(
            [sys.executable, "-c", RUNNING, str(given or ""), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(place)},
        )
        processes.append(process)
        assert process.stdout is not None
        return StateDir(Path(process.stdout.readline().strip()))

    yield up
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert list(place.iterdir()) == [], "each took what led to it away"


def asked(*words: str, **env: str) -> tuple[int, list[str]]:
    """The epoch that is told, so whose it is, and what is said beside it."""
    result = call("epoch", "-o", "json", *words, env=env)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["epoch"], problems(result)


def test_the_only_one_is_asked_and_named(servers: list[str], start: Start, tmp_path: Path) -> None:
    """With a directory that was given as with a temporary one."""
    told = f"oarlock: asking the `oarlock up` in {tmp_path / 'given'}; --state-dir names another"
    given = start(servers[1], tmp_path / "given")
    assert asked() == (2, [told])
    for words, env in (([], {"OARLOCK_STATE_DIR": str(given.root)}), (["--state-dir", str(given.root)], {})):
        assert asked(*words, **env) == (2, []), "whoever named it is not told"
    assert asked("--redis", servers[0]) == (1, [])


KUBECONFIG = """
apiVersion: v1
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
current-context: here
"""


@pytest.mark.parametrize(("command", "program"), [("worker", worker_command), ("ingest", ingest_command)])
def test_a_process_says_for_which_it_works(
    servers: list[str], start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, program: ModuleType
) -> None:
    """Without --redis a worker or an ingestor joins the fleet of the `oarlock up` that runs, in its cluster, and names
    it. It takes no other cluster's kubeconfig.
    """
    used: list[tuple[str, str]] = []
    name = "run_fleet" if program is worker_command else "run_ingestor"
    monkeypatch.setattr(
        program, name, lambda settings, *_, **__: used.append((settings.redis_url, settings.kubeconfig)) or 0
    )
    monkeypatch.setattr(logs, "set_up", lambda *_: None)
    theirs = tmp_path / "kubeconfig"
    theirs.write_text(KUBECONFIG)
    given = start(servers[1], tmp_path / "given")
    given.kubeconfig.write_text(KUBECONFIG)
    told = f"oarlock: working with the `oarlock up` in {given.root}; --redis names another"
    of_its_own: tuple[tuple[str, ...], ...] = ((), ("--kubeconfig", str(given.kubeconfig)))
    for words in of_its_own:
        assert problems(call(command, *words)) == [told]
    assert problems(call(command, env={"KUBECONFIG": str(given.kubeconfig)})) == [told]
    assert problems(call(command, "--kubeconfig", str(theirs), "--redis", servers[0])) == []
    its = str(given.kubeconfig)
    assert used == [(servers[1], its), (servers[1], its), (servers[1], ""), (servers[0], str(theirs))]
    for mixed in (call(command, "--kubeconfig", str(theirs)), call(command, env={"KUBECONFIG": str(theirs)})):
        assert mixed.exit_code == 2
        assert problems(mixed) == [
            f"oarlock: {theirs} is not of the `oarlock up` in {given.root}, which was found for want of --redis: give"
            f" --redis, or --kubeconfig {its}"
        ]
    assert len(used) == 4, "nothing was started"


def test_of_two_none_is_asked_silently(servers: list[str], start: Start, tmp_path: Path) -> None:
    temporary, given = start(servers[0]), start(servers[1], tmp_path / "given")
    for command in (["explain", "a/b"], ["queue"], ["status"], ["down"], ["nodes", "list"]):
        result = call(*command)
        assert result.exit_code == 2, command
        (line,) = problems(result)
        assert "2 `oarlock up` are running; say which with --state-dir or KUBECONFIG: " in line
        assert str(temporary.root) in line
        assert str(given.root) in line
    assert asked("--state-dir", str(given.root)) == (2, [])


@pytest.mark.parametrize("variable", ["KUBECONFIG", "OARLOCK_KUBECONFIG"])
def test_the_kubeconfig_decides(servers: list[str], start: Start, tmp_path: Path, variable: str) -> None:
    ups = [start(servers[0]), start(servers[1], tmp_path / "given")]
    for number, state in enumerate(ups, 1):
        told = [f"oarlock: asking the `oarlock up` in {state.root}; --state-dir names another"]
        assert asked(**{variable: str(state.kubeconfig)}) == (number, told)
        assert call("status", "-o", "json", env={variable: str(state.kubeconfig)}).stdout.count(str(state.root)) > 0
    (tmp_path / "config").symlink_to(ups[0].kubeconfig)
    assert asked(KUBECONFIG=f"/nowhere/config:{tmp_path / 'config'}")[0] == 1
    assert asked(KUBECONFIG=str(ups[0].kubeconfig), OARLOCK_STATE_DIR=str(ups[1].root)) == (2, [])
    other = call("epoch", env={"KUBECONFIG": str(tmp_path / "another-cluster")})
    assert (other.exit_code, "2 `oarlock up` are running" in other.stderr) == (2, True)


def test_one_that_is_only_starting(start: Start, tmp_path: Path) -> None:
    start("", tmp_path / "given")
    for command in (["queue"], ["nodes", "list"]):
        result = call(*command)
        assert result.exit_code == 2
        assert problems(result) == [
            f"oarlock: the `oarlock up` in {tmp_path / 'given'} is still starting; ask again",
        ]


def test_what_a_killed_one_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    given = tmp_path / "elsewhere"
    given.mkdir()
    (given / "kept").touch()
    for name, age_s in (("old", 1_000.0), ("young", 0.0)):
        link = tmp_path / f"{PREFIX}at-{name}"
        link.symlink_to(given)
        at_s = link.lstat().st_mtime - age_s
        os.utime(link, (at_s, at_s), follow_symlinks=False)
    state_dir.sweep_temporary()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", f"{PREFIX}at-young"]
    assert (given / "kept").exists()
