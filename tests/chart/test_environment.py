"""What pods are given is what the programs take: commands, variables, URLs, files."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import click
import pytest

from oarlock.broker.connection.redis_url import Kind, parse
from oarlock.cli import cli
from oarlock.workers.metrics.serving.bind_address import listen
from oarlock.workers.process.kinds import controller_names, enabled_queues
from oarlock.workers.process.settings import Settings, setting_names
from tests.chart.engine import CHART, CI_VALUES, NEEDED, Rendered, ci_values, merged, render

BY_NAME = pytest.mark.parametrize("path", CI_VALUES, ids=lambda path: path.name.removesuffix("-values.yaml"))
ROLES = {"ingestor": "ingest", "worker": "worker"}


def expanded(env: dict[str, str]) -> dict[str, str]:
    """As the kubelet does: $(NAME) by the variables before; what comes from a Secret is made up."""
    found: dict[str, str] = {}
    for name, value in env.items():
        given = "a-secret" if value.startswith("secret ") else value
        found[name] = re.sub(r"\$\((\w+)\)", lambda match: found.get(match[1], match[0]), given)
    return found


def option_variables(command: str) -> set[str]:
    loaded = cli.get_command(click.Context(cli), command)
    assert loaded is not None
    return {str(option.envvar) for option in loaded.params if getattr(option, "envvar", None)}


@BY_NAME
@pytest.mark.parametrize("role", ROLES)
def test_every_variable_is_one_that_is_read(path: Path, role: str) -> None:
    known = option_variables(ROLES[role]) | {f"OARLOCK_{name.upper()}" for name in setting_names()}
    given = {name for name in render(ci_values(path)).env(role) if name.startswith("OARLOCK_")}
    assert given - known == set()
    assert {"OARLOCK_REDIS_URL", "OARLOCK_CONTROLLERS", "OARLOCK_LEASE_NAMESPACE", "OARLOCK_SHARDS"} <= given


@BY_NAME
@pytest.mark.parametrize("role", ROLES)
def test_the_settings_are_taken(path: Path, role: str) -> None:
    values = ci_values(path)
    env = expanded(render(values).env(role))
    settings = Settings.from_env(env)
    assert settings.shards == values.get("shards", 1)
    off = {name for name, on in values.get("controllers", {}).items() if not on}
    named = {queue: name for name, queue in controller_names().items()}
    assert {named[queue] for queue in enabled_queues(settings.controllers) if queue in named} == {*named.values()} - off
    assert env["OARLOCK_LOG_FORMAT"] in ("json", "text")


@BY_NAME
@pytest.mark.parametrize("role", ROLES)
def test_the_command_is_taken(path: Path, role: str) -> None:
    values = ci_values(path)
    command, *arguments = render(values).pod(role)["containers"][0]["args"]
    assert command == ROLES[role]
    loaded = cli.get_command(click.Context(cli), command)
    assert loaded is not None
    context = loaded.make_context(command, list(arguments))
    if role == "worker":
        assert context.params["workers"] == values.get("worker", {}).get("processes", 2)


def url_of(values: dict[str, Any], role: str = "worker") -> Any:
    return parse(expanded(render(values).env(role))["OARLOCK_REDIS_URL"])


def test_urls_lead_where_the_values_say() -> None:
    bundled = url_of(dict(NEEDED))
    assert (bundled.kind, bundled.tls, bundled.username) == (Kind.STANDALONE, False, "worker")
    assert bundled.places == (("oarlock-redis.oarlock.svc", 6379),)
    assert url_of(dict(NEEDED), "ingestor").username == "ingestor"

    def of(file: str) -> Any:
        return url_of(ci_values(CHART / "ci" / f"redis-{file}-values.yaml"))

    own = of("standalone")
    assert (own.places, own.username, own.password, own.db) == (
        (("redis.data.svc", 6380),),
        "fleet-worker",
        "a-secret",
        2,
    )
    sentinel = of("sentinel")
    assert (sentinel.kind, len(sentinel.places), sentinel.master, sentinel.db) == (Kind.SENTINEL, 3, "fleet", 0)
    assert (sentinel.sentinel_username, sentinel.sentinel_password) == ("watcher", "a-secret")
    cluster = of("cluster")
    assert (cluster.kind, len(cluster.places), cluster.tls) == (Kind.CLUSTER, 2, False)
    assert of("tls").tls


@pytest.mark.parametrize("mode", ["standalone", "sentinel", "cluster"])
def test_tls_wherever_redis_is(mode: str) -> None:
    redis = {"mode": mode, "hosts": ["[fd00::1]:6379"], "rqUrlKey": "rq", "tls": {"enabled": True}}
    values = merged(NEEDED, {"redis": redis})
    assert url_of(values).tls
    assert url_of(values).places == (("fd00::1", 6379),)
    assert "OARLOCK_REDIS_TLS_CA" not in render(values).env("worker")  # an authority that the system knows
    redis = merged(redis, {"tls": {"existingSecret": "files", "caKey": "ca.pem"}})
    env = render(merged(NEEDED, {"redis": redis})).env("worker")
    assert env["OARLOCK_REDIS_TLS_CA"] == "/etc/oarlock/redis-tls/ca.pem"
    assert "OARLOCK_REDIS_TLS_CERT" not in env


def mounted(rendered: Rendered, role: str, path: str) -> dict[str, Any]:
    """The volume in which a file lies."""
    pod = rendered.pod(role)
    (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if path.startswith(each["mountPath"] + "/")]
    (volume,) = [each for each in pod["volumes"] if each["name"] == mount["name"]]
    return volume["secret"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("role", ROLES)
def test_files_are_where_the_variables_say(role: str) -> None:
    rendered = render(ci_values(CHART / "ci" / "redis-tls-values.yaml"))
    env = rendered.env(role)
    for name in ("CA", "CERT", "KEY"):
        assert mounted(rendered, role, env[f"OARLOCK_REDIS_TLS_{name}"])["secretName"] == "redis-tls"
    secret = mounted(rendered, role, env["OARLOCK_SIGNING_KEY_FILE"])
    assert secret["secretName"] == "oarlock-signing"
    other = render(ci_values(CHART / "ci" / "settings-values.yaml"))
    (item,) = mounted(other, role, other.env(role)["OARLOCK_SIGNING_KEY_FILE"])["items"]
    assert item == {"key": "key-of-2026", "path": "signing.key"}
    assert "OARLOCK_SIGNING_KEY_FILE" not in render(merged(NEEDED, {"signing": {"enabled": False}})).env(role)


def test_probes_and_ports_are_those_that_are_served() -> None:
    for shards in (1, 3):
        rendered = render(merged(NEEDED, {"shards": shards, "worker": {"processes": 3}, "metrics": {"port": 9100}}))
        assert rendered.env("worker")["OARLOCK_METRICS_BIND_ADDRESS"] == ":9100"
        container = rendered.pod("worker")["containers"][0]
        served = [port["containerPort"] for port in container["ports"]]
        assert served == list(range(9100, 9100 + shards))
        assert [port["port"] for port in rendered.one("Service", "oarlock-worker")["spec"]["ports"]] == served
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            path = "/readyz" if probe == "readinessProbe" else "/livez"
            if shards == 1:
                assert container[probe]["httpGet"] == {"path": path, "port": "metrics"}


def test_the_probe_of_several_shards_asks_each() -> None:
    """Its own words, against ports of this machine: all answer, then one is silent."""

    class Well(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/livez" else 500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return None

    servers: list[HTTPServer] = []
    for _ in range(20):  # two ports in a row that are free
        first = HTTPServer(("127.0.0.1", 0), Well)
        try:
            servers = [first, HTTPServer(("127.0.0.1", first.server_port + 1), Well)]
            break
        except OSError:
            first.server_close()
    values = merged(NEEDED, {"shards": 2, "metrics": {"port": servers[0].server_port}})
    command = render(values).pod("worker")["containers"][0]["livenessProbe"]["exec"]["command"]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def asked(*words: str) -> int:
        quiet = {"stderr": subprocess.DEVNULL, "env": {"no_proxy": "*"}}
        return subprocess.run([sys.executable, *words], **quiet, timeout=60, check=False).returncode

    assert command[0] == "python"
    assert asked(*command[1:]) == 0
    assert asked(command[1], command[2].replace("livez", "readyz")) == 1
    servers[1].shutdown()
    servers[1].server_close()
    assert asked(*command[1:]) == 1
    servers[0].shutdown()
    servers[0].server_close()


def test_terminating_replicas_are_left_to_the_answers_of_the_server() -> None:
    """The version of today is not that of tomorrow; only by hand are they turned off."""
    for version in ("v1.34.9", "v1.35.0"):
        assert "OARLOCK_TERMINATING_REPLICAS" not in render(kube_version=version).env("worker")
    by_hand = merged(NEEDED, {"settings": {"TERMINATING_REPLICAS": False}})
    assert render(by_hand).env("worker")["OARLOCK_TERMINATING_REPLICAS"] == "false"


def test_large_numbers_are_written_out() -> None:
    env = render(ci_values(CHART / "ci" / "settings-values.yaml")).env("worker")
    assert env["OARLOCK_KUBE_API_BURST"] == "1000000"
    assert env["OARLOCK_KUBE_API_QPS"] == "50"


def test_the_address_is_one_that_can_be_bound() -> None:
    """Port 0 in place of the chart's: the spelling is what is tried."""
    spelled = render().env("worker")["OARLOCK_METRICS_BIND_ADDRESS"].replace("8080", "0")
    for each in listen(spelled):
        each.close()


def test_the_version_is_that_of_the_package() -> None:
    version = tomllib.loads((CHART.parents[1] / "pyproject.toml").read_text())["project"]["version"]
    assert render().pod("worker")["containers"][0]["image"].endswith(f":{version}")
