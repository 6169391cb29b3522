"""Which servers are refused at the start, in one line each, and what a server's life is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from oarlock.broker.connection import fitness, server_facts
from oarlock.broker.connection.client import connect
from oarlock.broker.connection.redis_url import BadRedisUrl, parse
from oarlock.cli import cli
from oarlock.sandbox.redis import redis_binary
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.redis.real_servers import RealServer

RUN = "ab" * 20


def info(**values: object) -> dict[str, str]:
    """An INFO answer as a server's, changed by ``values``."""
    usual = {
        "redis_version": "7.0.15",
        "redis_mode": "standalone",
        "run_id": RUN,
        "role": "master",
        "connected_slaves": "0",
        "aof_enabled": "0",
        "second_repl_offset": "-1",
        "maxmemory_policy": "noeviction",
    }
    return usual | {name: str(value) for name, value in values.items()}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the server says; the test changes it."""
    said = info()
    monkeypatch.setattr(server_facts, "ask", lambda client, *sections: said)
    return said


REFUSED = [
    ({"redis_version": "6.2.4"}, "Redis 6.2.4 is too old: oarlock needs 7.0 or newer (6.2.5 will do without"),
    ({"redis_version": "6.2.14", "aof_enabled": 1}, "Redis 6.2.14 is too old"),
    ({"redis_version": "6.2.14", "connected_slaves": 1}, "Redis 6.2.14 is too old"),
    ({"redis_version": "5.0.9"}, "Redis 5.0.9 is too old"),
    ({"role": "slave", "master_host": "h", "master_port": 1}, "read-only replica of h:1: give the URL of the master"),
    ({"redis_mode": "cluster"}, "it is a node of a cluster: write redis+cluster://"),
    ({"redis_mode": "sentinel"}, "it is a Sentinel: write redis+sentinel://"),
    ({"run_id": ""}, "gives no run_id"),
    ({"run_id": "0" * 40}, "gives no run_id"),
    ({"maxmemory_policy": "allkeys-lru"}, "maxmemory-policy is allkeys-lru: it would drop records"),
]


@pytest.mark.parametrize(("values", "why"), REFUSED)
def test_who_is_refused(told: dict[str, str], values: dict[str, object], why: str) -> None:
    told |= info(**values)
    with pytest.raises(fitness.UnfitServer) as caught:
        fitness.check_for_data(None, parse("redis://h"))  # type: ignore[arg-type]
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cluster_s_url_needs_a_cluster(told: dict[str, str]) -> None:
    with pytest.raises(fitness.UnfitServer, match="not a node of a cluster"):
        fitness.check(None, parse("redis+cluster://h/"))  # type: ignore[arg-type]
    told.pop("redis_mode")
    told["server_mode"] = "cluster"  # as Valkey says it
    fitness.check_for_data(None, parse("redis+cluster://h/"))  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [{}, {"redis_version": "6.2.5"}, {"redis_version": "8.2.1", "aof_enabled": 1}])
def test_who_will_do(told: dict[str, str], values: dict[str, object]) -> None:
    told |= info(**values)
    fitness.check_for_data(None, parse("redis://h"))  # type: ignore[arg-type]


def test_a_doubt_about_replicas(told: dict[str, str]) -> None:
    assert fitness.doubt(None) == ""  # type: ignore[arg-type]
    told |= info(connected_slaves=1)
    assert "min-replicas-to-write" in fitness.doubt(None)  # type: ignore[arg-type]
    told["min_slaves_good_slaves"] = "1"
    assert fitness.doubt(None) == ""  # type: ignore[arg-type]


def test_the_name_of_a_life() -> None:
    promoted = {"master_replid2": "cd" * 20, "second_repl_offset": "15"}
    assert server_facts.life(info()) == RUN
    assert server_facts.life(info(**promoted)) == f"{RUN}+cdcdcdcdcdcd.15"
    assert server_facts.life(info(**promoted | {"second_repl_offset": "16"})) != server_facts.life(info(**promoted))
    assert server_facts.life({}) == server_facts.life(info(run_id="0" * 40)) == ""
    assert server_facts.facts(b"# Server\r\nrun_id:1e5\r\nos:a:b\r\n\r\n") == {"run_id": "1e5", "os": "a:b"}


@pytest.mark.parametrize("command", ["queue", "worker", "ingest"])
def test_commands_refuse_it_with_exit_code_2(server: RealServer, tmp_path: Path, command: str) -> None:
    server.client().config_set("maxmemory-policy", "allkeys-lru")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}"
    )
    words = [
        command,
        "--redis",
        server.url("worker"),
        *(["--kubeconfig", str(kubeconfig)] if command != "queue" else []),
    ]
    result = CliRunner().invoke(cli, words, prog_name="oarlock")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    why = "has no oarlock epoch" if command == "queue" else "cannot be used: maxmemory-policy is allkeys-lru"
    assert why in result.stderr
    server.client().replicaof("127.0.0.1", "1")
    result = CliRunner().invoke(cli, words, prog_name="oarlock")
    assert (result.exit_code, "read-only replica" in result.stderr) == (2, True), result.stderr


def test_rq_keys_do_not_fit_into_a_cluster() -> None:
    from oarlock.workers.process.settings import Settings
    from oarlock.workers.rq.client import open_rq_client

    settings = Settings(redis_url="redis+cluster://u:secret@h:1/")
    with pytest.raises(BadRedisUrl, match="name another Redis for them with --rq-redis") as caught:
        open_rq_client(settings)
    assert "secret" not in str(caught.value)
    elsewhere = Settings(redis_url="redis+cluster://h:1/", rq_redis_url="redis://u@h:2/1")
    assert open_rq_client(elsewhere).connection_pool.connection_kwargs["port"] == 2


@pytest.mark.parametrize("binary", [each for each in redis_binary.installed() if each.version < (7, 0)], ids=str)
def test_the_embedded_server_will_do_until_it_keeps_a_file(binary: redis_binary.ServerBinary, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis", binary=binary) as old:
        client, url = connect(old.url("ingestor")), parse(old.url("ingestor"))
        fitness.check_for_data(client, url)
        connect(old.url("admin")).config_set("appendonly", "yes")
        with pytest.raises(fitness.UnfitServer, match=r"too old: oarlock needs 7\.0"):
            fitness.check_for_data(client, url)
        fitness.check_for_data(client, url, embedded=True)
