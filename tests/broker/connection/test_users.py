"""What each user may not do is refused; what it needs works. And the command that writes the users down."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from redis.exceptions import NoPermissionError

from oarlock.broker import epoch
from oarlock.broker.connection import acl, fitness
from oarlock.broker.connection.client import connect
from oarlock.broker.connection.redis_url import parse
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.events import Event
from oarlock.cli import cli
from tests.redis.real_servers import RealServer, started, until

ALL = ("ingestor", "worker", "metrics", "replica", "sentinel")
FORBIDDEN: dict[tuple[object, ...], tuple[str, ...]] = {
    ("EVAL", "return 1", 0): ALL,
    ("EVAL_RO", "return 1", 0): ALL,
    ("EVALSHA", "0" * 40, 1, "oarlock:x"): ("metrics", "replica", "sentinel"),
    ("FCALL", "f", 0): ALL,
    ("FUNCTION", "LOAD", "x"): ALL,
    ("SCRIPT", "LOAD", "return 1"): ("worker", "metrics", "replica", "sentinel"),
    ("SCRIPT", "EXISTS", "0" * 40): ALL,
    ("SCRIPT", "FLUSH"): ALL,
    ("FLUSHALL",): ALL,
    ("FLUSHDB",): ALL,
    ("SWAPDB", 0, 1): ALL,
    ("KEYS", "*"): ALL,
    ("CONFIG", "GET", "*"): ALL,
    ("CONFIG", "SET", "maxmemory", "1"): ALL,
    ("SHUTDOWN", "NOSAVE"): ALL,
    ("SAVE",): ALL,
    ("BGSAVE",): ALL,
    ("ACL", "LIST"): ALL,
    ("ACL", "SETUSER", "x"): ALL,
    ("MODULE", "LIST"): ALL,
    ("MONITOR",): ALL,
    ("SLOWLOG", "GET"): ALL,
    ("REPLICAOF", "NO", "ONE"): ("ingestor", "worker", "metrics", "replica"),
    ("CLUSTER", "NODES"): ALL,
    ("CLUSTER", "FAILOVER"): ALL,
    ("CLIENT", "LIST"): ("ingestor", "metrics", "replica", "sentinel"),
    ("CLIENT", "KILL", "TYPE", "normal"): ("ingestor", "worker", "metrics", "replica"),
    ("MIGRATE", "127.0.0.1", 1, "oarlock:x", 0, 100): ALL,
    ("RESTORE", "oarlock:x", 0, "x"): ALL,
    ("SORT", "oarlock:x"): ALL,
    ("GET", "elsewhere"): ALL,
    ("SET", "elsewhere", "x"): ALL,
    ("GET", "oarlock:x"): ("replica", "sentinel"),
    ("SET", "oarlock:x", "x"): ("metrics", "replica", "sentinel"),
    ("DEL", "oarlock:x"): ("metrics", "replica", "sentinel"),
    ("GET", "rq:x"): ("ingestor", "replica", "sentinel"),
    ("SET", "rq:x", "x"): ("ingestor", "metrics", "replica", "sentinel"),
    ("PUBLISH", "rq:pubsub:x", "x"): ("ingestor", "metrics", "replica"),
    ("PUBLISH", "elsewhere", "x"): ("ingestor", "worker", "metrics", "replica"),
    ("PSYNC", "?", "-1"): ("ingestor", "worker", "metrics", "sentinel"),
}


def test_what_is_forbidden_is_refused(server: RealServer) -> None:
    """Before anything is done: the server answers NOPERM to all of it, and nothing has changed afterwards."""
    clients = {user: connect(server.url(user)) for user in ALL}
    tried = 0
    for command, users in FORBIDDEN.items():
        for user in users:
            with pytest.raises(NoPermissionError):
                clients[user].execute_command(*command)
            tried += 1
    assert tried > 130
    assert server.client().dbsize() == 0


def test_what_each_needs_works(server: RealServer) -> None:
    ingestor, worker, metrics = (connect(server.url(user)) for user in ("ingestor", "worker", "metrics"))
    fitness.check_for_data(ingestor, parse(server.url("ingestor")))
    epoch.bootstrap(ingestor, 1)
    feeding = RedisBroker(ingestor, 1)
    feeding.stage("replicasets", "g", [Event("ns/a", "5", "u", b"blob", (), ("replicaset:ns/a",))])
    feeding.commit_list("replicasets", "g", "5")
    while feeding.republish():
        pass
    assert feeding.open(["replicasets"]) == ""
    working = RedisBroker(worker, 1)
    working.register("w", "s", ["replicaset"])
    assert working.renew(["w"], lease_ms=1_000) == []
    assert epoch.sweep_older(ingestor, 1) == 0
    for user in (ingestor, worker, metrics):
        assert epoch.current(user).intact
        fitness.check_for_data(user, parse(server.url("metrics")))
    assert Inspector(metrics, 1).queues() == ["replicaset"]
    worker.client_setname("w")
    assert "w" in {each["name"] for each in worker.client_list()}, "RQ's worker finds its address there"
    worker.sadd("rq:workers", "x")
    worker.publish("rq:pubsub:x", "y")


def test_a_replica_follows_with_the_rights_of_its_user(server: RealServer, tmp_path: Path) -> None:
    link = {"masteruser": "replica", "masterauth": "replica-word", "repl_diskless_sync_delay": 0}
    replica = RealServer(tmp_path / "replica", replicaof=f"127.0.0.1 {server.port}", **link)
    try:
        started(replica)
        until(lambda: replica.client().info("replication")["master_link_status"] == "up", what="the replica")
        url = parse(replica.url("worker"))
        with pytest.raises(fitness.UnfitServer, match=rf"read-only replica of 127\.0\.0\.1:{server.port}"):
            fitness.check(connect(replica.url("worker")), url)
    finally:
        replica.kill()


# -- the command -------------------------------------------------------------------------------------------------------

LONG = "a-password-long-enough-"


def write(*words: str, **passwords: str) -> Result:
    env = {f"OARLOCK_{user.upper()}_PASSWORD": word for user, word in passwords.items()}
    return CliRunner().invoke(cli, ["acl", *words], env=env, prog_name="oarlock")


def test_a_server_starts_with_what_the_command_writes(tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.mkdir()
    for user in (*acl.USERS, "replica"):
        (words / user).write_text(f"{LONG}{user}\n")
    path = tmp_path / "users.acl"
    done = write("--passwords", str(words), "--file", str(path))
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert LONG not in path.read_text()
    server = RealServer(tmp_path / "redis", users=False, aclfile=path).start()
    try:
        url = f"redis://worker:{LONG}worker@127.0.0.1:{server.port}/0"
        until(lambda: _answers(url), what="the server")
        admin = connect(f"redis://admin:{LONG}admin@127.0.0.1:{server.port}/0")
        users = {each.split()[1] for each in admin.acl_list()}
        assert users == {"default", *acl.USERS, "replica"}
    finally:
        server.kill()


def _answers(url: str) -> bool:
    try:
        return bool(connect(url).ping())
    except OSError:
        return False
    except Exception as error:
        if "Error 111" in str(error):
            return False
        raise


def test_it_writes_what_the_environment_gives() -> None:
    passwords = {user: LONG + user for user in acl.USERS}
    assert write(**passwords).output == acl.acl_file(passwords)


def test_what_is_missing_is_said_of_each_user(tmp_path: Path) -> None:
    path = tmp_path / "users.acl"
    result = write("--file", str(path), ingestor=LONG, worker="short", metrics=LONG + " x")
    assert result.exit_code == 2
    told = result.stderr.strip().splitlines()
    assert [line.split()[1].rstrip(":") for line in told] == [
        "OARLOCK_WORKER_PASSWORD",
        "OARLOCK_METRICS_PASSWORD",
        "OARLOCK_ADMIN_PASSWORD",
    ]
    assert not path.exists()
    assert "short" not in result.stderr.replace("shorter", "")
