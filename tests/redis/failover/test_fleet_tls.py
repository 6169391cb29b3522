"""A whole fleet with the users of `oarlock acl` and nothing else, over TLS with certificates, and a Redis that dies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from oarlock.broker.connection.client import connect
from oarlock.cli import cli
from tests.redis.certificates import Certificates
from tests.redis.failover.fleet_stage import DRAIN_S, FleetStage
from tests.redis.real_servers import RealServer, free_port, started


@pytest.fixture
def encrypted(certificates: Certificates, tmp_path: Path) -> Iterator[RealServer]:
    port = free_port()
    server = RealServer(tmp_path / "redis", port=port, **certificates.options(port))
    try:
        started(server)
        yield server
    finally:
        server.kill()


@pytest.mark.timeout(300)
def test_nobody_needs_more_than_its_user_may(encrypted: RealServer, certificates: Certificates, tmp_path: Path) -> None:
    files = certificates.files
    tls = {"OARLOCK_REDIS_TLS_CA": files.ca, "OARLOCK_REDIS_TLS_CERT": files.cert, "OARLOCK_REDIS_TLS_KEY": files.key}
    stage = FleetStage(
        tmp_path / "fleet", {user: encrypted.url(user, "rediss") for user in ("ingestor", "worker")}, tls
    )
    try:
        stage.await_open(after=0)
        stage.await_rest()
        metrics = {"OARLOCK_REDIS_URL": encrypted.url("metrics", "rediss"), **tls}
        for words in (["queue"], ["locks"], ["epoch"], ["expectations"], ["get", "pods"], ["explain", "default/set-0"]):
            result = CliRunner().invoke(cli, words, env=metrics, prog_name="oarlock")
            assert result.exit_code == 0, (words, result.output)
        result = CliRunner().invoke(cli, ["get", "pods", "-o", "json"], env=metrics, prog_name="oarlock")
        assert len(json.loads(result.stdout)) == len(stage.uids)
        admin = connect(encrypted.url("admin", "rediss"), tls=files)
        assert admin.smembers("rq:workers"), "RQ's keys are there"
        # What redis-py and RQ try and can do without; nothing of ours is among what was refused.
        refused = {entry["object"] for entry in admin.execute_command("ACL LOG") if entry["reason"] != "auth"}
        assert {_text(each) for each in refused} <= {"client|setinfo", "hello"}, refused

        before = stage.epoch()["epoch"]
        stage.load()
        encrypted.kill()
        encrypted.start()
        took = stage.await_open(after=before)
        stage.await_made(21)
        took["rest_s"] = round(stage.await_rest(), 2)
        print(f"D {DRAIN_S} s, restarted {took}, {stage.judge.created()} pods made")
        assert stage.judge.over_creations() == []
        assert stage.judge.created() > 20
    except BaseException:
        print(stage.logs())
        raise
    finally:
        stage.close()


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
