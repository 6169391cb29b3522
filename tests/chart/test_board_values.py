"""The chart runs a board: what it is given is what `oarlock board` takes, and leads to the fleet as the right user."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import click
import pytest

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.connection.redis_url import parse
from oarlock.cli import cli
from oarlock.cli.watch.api_calls import metrics_address
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.settings import Settings, setting_names
from tests.chart.engine import CHART, CI_VALUES, NEEDED, Obj, Rendered, ci_values, merged, render
from tests.chart.test_environment import expanded, mounted, option_variables
from tests.cli.board.running import address_of
from tests.e2e.e2e_helpers import environment, stopped

READS, WRITES = (CHART / "ci" / f"board{name}-values.yaml" for name in ("", "-write"))
TOKEN = "of-a-test-0123456789"
OPERATOR = {
    "operator": {"file": "site.py", "configMap": "site"},
    "serviceAccounts": {"create": False, "ingestor": "in", "worker": "out"},
}


def board(values: Obj | None = None) -> Rendered:
    return render(merged(NEEDED, {"board": {"enabled": True}}, values or {}))


def given(rendered: Rendered) -> dict[str, Any]:
    """The command's parameters, as its own parser reads them; a file has only to be named."""
    command, *arguments = rendered.pod("board")["containers"][0]["args"]
    assert command == "board"
    loaded = cli.get_command(click.Context(cli), command)
    assert loaded is not None
    return loaded.make_context(command, list(arguments)).params


def test_nothing_of_it_unless_asked_for() -> None:
    for path in CI_VALUES:
        if path in (READS, WRITES):
            continue
        rendered = render(ci_values(path))
        assert not [each for each in rendered.objects if each["metadata"]["name"].endswith("-board")]
        assert '"board"' not in json.dumps([each for each in rendered.objects if each["kind"] != "ConfigMap"])
        assert "board, at" not in rendered.notes
    with_it = {(each["kind"], each["metadata"]["name"]) for each in board().objects}
    without = {(each["kind"], each["metadata"]["name"]) for each in render().objects}
    kinds = ("NetworkPolicy", "Service", "ServiceAccount", "StatefulSet")
    assert with_it - without == {(kind, "oarlock-board") for kind in kinds}
    assert without <= with_it


def test_it_reads_as_the_user_who_only_reads() -> None:
    for path, user in ((READS, "metrics"), (WRITES, "worker")):
        env = render(ci_values(path)).env("board")
        assert parse(expanded(env)["OARLOCK_REDIS_URL"]).username == user
        assert env["REDIS_PASSWORD"].endswith(f"/{user}-password")
    assert given(render(ci_values(READS)))["write"] is False
    urls = board({"redis": {"mode": "url"}}).env("board")["OARLOCK_REDIS_URL"]
    assert urls == "secret oarlock-redis/metrics-url"
    named = {"redis": {"mode": "standalone", "hosts": ["redis:6379"], "users": {"metrics": "looks"}}}
    assert parse(expanded(board(named).env("board"))["OARLOCK_REDIS_URL"]).username == "looks"


def test_the_url_of_rqs_redis_is_one_of_its_own() -> None:
    """That of workers may write."""
    cluster = {"redis": {"mode": "cluster", "hosts": ["redis:6379"], "rqUrlKey": "rq-url"}}
    assert "OARLOCK_RQ_REDIS_URL" in board(cluster).env("worker")
    assert "OARLOCK_RQ_REDIS_URL" not in board(cluster).env("board")
    env = board(merged(cluster, {"board": {"rqUrlKey": "rq-metrics-url"}})).env("board")
    assert env["OARLOCK_RQ_REDIS_URL"] == "secret oarlock-redis/rq-metrics-url"


@pytest.mark.parametrize(
    "values",
    [
        {},
        OPERATOR,
        {"dryRun": {"fleetId": "shadow"}, "serviceAccounts": OPERATOR["serviceAccounts"]},
        {"shards": 2, "settings": {"LEASE_MS": 4000}, "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy"}]},
        {"redis": {"mode": "standalone", "hosts": ["a:1"], "tls": {"enabled": True, "existingSecret": "redis-tls"}}},
    ],
    ids=["alone", "operator", "dry run", "shards", "tls"],
)
def test_it_is_told_which_fleet_and_no_secret_of_it(values: Obj) -> None:
    rendered = board(values)
    env = rendered.env("board")
    known = option_variables("board") | {f"OARLOCK_{name.upper()}" for name in setting_names()} | {"REDIS_PASSWORD"}
    assert env.keys() <= known
    fleet, mine = (Settings.from_env(expanded(rendered.env(role))) for role in ("worker", "board"))
    assert (mine.tags, mine.lease_ms, mine.redis_tls_ca) == (fleet.tags, fleet.lease_ms, fleet.redis_tls_ca)
    assert env.get("OARLOCK_OPERATOR") == rendered.env("worker").get("OARLOCK_OPERATOR")
    files = {each["name"] for each in rendered.pod("board")["volumes"]}
    assert files == {each["name"] for each in rendered.pod("worker")["volumes"]} - {"signing"}
    assert "OARLOCK_SIGNING_KEY_FILE" not in env


def test_the_token_is_a_file_of_its_secret() -> None:
    rendered = render(ci_values(WRITES))
    options = given(rendered)
    assert (options["write"], options["path_prefix"]) == (True, "/oarlock")
    assert options["hosts"] == ("oarlock-board.oarlock.svc", "board.example", "board.internal.example")
    secret = mounted(rendered, "board", str(options["token_file"]))
    assert secret["secretName"] == "oarlock-board"
    assert secret["items"] == [{"key": "token", "path": options["token_file"].name}]
    assert given(board())["token_file"] is None
    looks = board({"board": {"tokenSecret": "looks", "tokenKey": "key"}})
    assert given(looks)["write"] is False
    assert mounted(looks, "board", str(given(looks)["token_file"]))["items"][0]["key"] == "key"


def addresses(values: Obj) -> set[str]:
    return {metrics_address(url) for url in given(board(values))["metrics_urls"]}


def test_it_asks_each_process_for_its_api_calls() -> None:
    """By the names that a StatefulSet's pods have in its Service, at the ports that they serve."""
    shards = {"shards": 2, "metrics": {"port": 9100}, "worker": {"replicas": 1}, "ingestor": {"replicas": 1}}
    rendered = board(shards)
    expected = set()
    for role in ("ingestor", "worker"):
        spec = rendered.one("StatefulSet", f"oarlock-{role}")["spec"]
        ports = [port["containerPort"] for port in rendered.pod(role)["containers"][0]["ports"]]
        expected |= {f"http://oarlock-{role}-0.{spec['serviceName']}.oarlock.svc:{port}/metrics" for port in ports}
    assert addresses(shards) == expected
    assert len(addresses({})) == 4
    assert len(addresses({"worker": {"autoscaling": {"mode": "hpa", "maxReplicas": 7}}})) == 2 + 7
    assert addresses({"board": {"apiCalls": False}}) == set()


def test_the_notes_lead_to_it() -> None:
    assert "port-forward service/oarlock-board 8088\n" in render(ci_values(READS)).notes
    notes = board({"board": {"port": 9000, "pathPrefix": "/oarlock"}}).notes
    assert "http://127.0.0.1:9000/oarlock/" in notes
    assert "port-forward service/oarlock-board 9000" in notes


def test_a_board_that_others_reach_without_a_token_is_warned_of() -> None:
    to_others = {"networkPolicy": {"boardFrom": [{"podSelector": {}}]}}
    assert "WARNING" not in board().notes
    assert "no token: the peers of networkPolicy.boardFrom may look" in board(to_others).notes
    assert "no token: every pod that reaches it may look" in board({"networkPolicy": {"enabled": False}}).notes
    assert "WARNING" not in board(merged(to_others, {"board": {"tokenSecret": "looks"}})).notes
    assert "WARNING" not in render(ci_values(WRITES)).notes


@dataclass(frozen=True)
class Asked:
    """A board that runs with the words and the variables of a rendered pod. Only its port and places are of here."""

    address: str
    container: Obj

    def status(self, path: str, token: str = "", host: str = "", body: bytes | None = None) -> int:
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"Host": host} if host else {}
        try:
            with urlopen(Request(self.address + path, body, headers), timeout=30) as answer:
                return int(answer.status)
        except HTTPError as refused:
            refused.close()
            return refused.code


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """With the users of the chart's, and an epoch that has begun."""
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as running:
        client = connect(running.url("admin"))
        epoch.bootstrap(client, 3)
        client.close()
        yield running


@pytest.fixture(scope="module", params=["reads", "writes"])
def asked(request: pytest.FixtureRequest, redis: EmbeddedRedis, tmp_path_factory: Any) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("board")
    (folder / "token").write_text(f"{TOKEN}\n")
    writes = {"write": True, "tokenSecret": "oarlock-board", "pathPrefix": "/oarlock"}
    rendered = board({"board": {"apiCalls": False, **(writes if request.param == "writes" else {})}})
    user = parse(expanded(rendered.env("board"))["OARLOCK_REDIS_URL"]).username
    container = rendered.pod("board")["containers"][0]
    here = {":8088": "127.0.0.1:0", "/etc/oarlock/board/token": str(folder / "token")}
    words = [here.get(word, word) for word in container["args"]]
    mine = environment(**rendered.env("board") | {"OARLOCK_REDIS_URL": redis.url(user)})
    with (
        (folder / "log").open("wb") as out,
        subprocess.Popen([sys.executable, "-m", "oarlock.cli", *words], stdout=out, stderr=out, env=mine) as process,
    ):
        try:
            yield Asked(address_of(process, folder / "log").rstrip("/"), container)
        finally:
            stopped(process, signal.SIGTERM, 10)


@pytest.mark.real
def test_a_real_one_answers_its_probes_and_those_who_may_look(asked: Asked) -> None:
    writes = "--write" in asked.container["args"]
    prefix = "/oarlock" if writes else ""
    origin = asked.address.removesuffix(prefix)
    at_its_root = Asked(origin, asked.container)
    for probe in ("livenessProbe", "readinessProbe"):
        assert at_its_root.status(asked.container[probe]["httpGet"]["path"]) == 200
    assert asked.address == origin + prefix
    assert asked.status("/api/look", TOKEN) == 200
    assert asked.status("/api/look") == (401 if writes else 200)
    assert asked.status("/api/look", TOKEN, host="oarlock-board.oarlock.svc:8088") == 200
    assert asked.status("/api/look", TOKEN, host="rebound.example") == 421
    body = b'{"shard": "0", "queue": "replicaset", "key": "shop/web"}'
    assert asked.status("/api/requeue", TOKEN, body=body) == (200 if writes else 405)
