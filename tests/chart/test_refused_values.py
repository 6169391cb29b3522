"""What is wrong or missing in the values is refused before anything is made, in a line that names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process.kinds import controller_names
from oarlock.workers.process.settings import setting_names
from tests.chart.engine import NEEDED, Refused, merged, render

NONE_ON = dict.fromkeys(controller_names(), False)
SENTINEL = {"mode": "sentinel", "hosts": ["a:26379"]}
CASES: list[tuple[Mapping[str, Any], str]] = [
    # a Secret that is missing
    ({"redis": {"existingSecret": ""}}, "there are no default passwords: make a Secret with"
     " the keys admin-password, ingestor-password, metrics-password, worker-password"),
    ({"redis": {**SENTINEL, "existingSecret": ""}}, "with the keys ingestor-password, worker-password and"),
    ({"redis": {"mode": "url", "existingSecret": ""}}, "make a Secret with the keys ingestor-url, worker-url and"),
    ({"signing": {"existingSecret": ""}}, "signing.existingSecret is missing: make a Secret with the key signing.key"),
    (
        {"redis": {"mode": "standalone", "hosts": ["a:1"], "tls": {"enabled": True, "clientCertificate": True}}},
        "redis.tls.existingSecret is missing",
    ),
    # values that do not go together
    ({"controllers": NONE_ON}, "all are switched off"),
    ({"redis": {"mode": "standalone"}}, "redis.hosts is missing"),
    ({"redis": {"mode": "sentinel"}}, "redis.hosts is missing"),
    ({"redis": {"mode": "standalone", "hosts": ["a:1", "b:1"]}}, "redis.mode=standalone has one host"),
    ({"redis": {"mode": "cluster", "hosts": ["a:1"]}}, "redis.rqUrlKey is missing"),
    ({"redis": {"mode": "cluster", "hosts": ["a:1"], "rqUrlKey": "k", "database": 3}}, "a Cluster has database 0 only"),
    ({"redis": {"tls": {"enabled": True}}}, "redis.tls is for a Redis of your own"),
    ({"redis": {"users": {"worker": "w"}}}, "redis.users is for a Redis of your own"),
    ({"redis": {"users": {"metrics": "m"}}}, "redis.users is for a Redis of your own"),
    (
        {"redis": {"mode": "url", "tls": {"clientCertificate": True}}},
        "redis.tls.clientCertificate needs redis.tls.enabled=true",
    ),
    ({"worker": {"autoscaling": {"mode": "hpa", "minReplicas": 0}}}, "an HPA keeps at least 1"),
    ({"worker": {"autoscaling": {"minReplicas": 9, "maxReplicas": 3}}}, "minReplicas is above maxReplicas"),
    ({"worker": {"autoscaling": {"mode": "keda", "keda": {"source": "prometheus"}}}}, "keda.serverAddress is missing"),
    ({"settings": {"REDIS_URL": "redis://x"}}, "settings.REDIS_URL is set by another value"),
    (
        {"redis": {"mode": "url", "existingSecret": ""}, "board": {"enabled": True}},
        "with the keys ingestor-url, metrics-url, worker-url and",
    ),
    ({"board": {"enabled": True, "write": True}}, "board.tokenSecret is missing: whoever may write gives a token"),
    ({"settings": {"BOARD_TOKEN": "0123456789abcdef"}}, "settings.BOARD_TOKEN is set by another value"),
    ({"settings": {"KUBE_APIQPS": 5}}, "settings.KUBE_APIQPS: there is no such setting; docs/flags.md names them"),
    ({"extraEnv": [{"name": "OARLOCK_REDIS_URL", "value": "redis://x"}]}, "extraEnv: OARLOCK_REDIS_URL is there twice"),
    ({"extraEnv": [{"name": "OARLOCK_WORKERS", "value": "3"}]}, "extraEnv: OARLOCK_WORKERS is there twice, or set by"),
    ({"extraEnv": [{"name": "REDIS_PASSWORD", "value": "x"}]}, "extraEnv: REDIS_PASSWORD is there twice, or set by"),
    ({"extraEnv": [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}]}, "extraEnv: A is there twice"),
    (
        {"settings": {"LEASE_MS": 6000}, "extraEnv": [{"name": "OARLOCK_LEASE_MS", "value": "7000"}]},
        "extraEnv: OARLOCK_LEASE_MS is there twice",
    ),
    ({"redis": {"hosts": ["redis.example:6379"]}}, "redis.hosts is for a Redis of your own, and redis.mode=bundled"),
    ({"redis": {"rqUrlKey": "rq-url"}}, "redis.rqUrlKey is for a Redis of your own, and with redis.mode=bundled"),
    ({"board": {"rqUrlKey": "rq-url"}}, "board.rqUrlKey is for a Redis of your own, and with redis.mode=bundled"),
    ({"metrics": {"port": 65535}, "shards": 2}, "metrics.port: shards=2 need as many ports from 65535 on"),
    ({"fullnameOverride": "1st"}, "fullnameOverride: a Service cannot be named 1st"),
    (
        {"worker": {"podLabels": {"app.kubernetes.io/component": "x"}}},
        "worker.podLabels: app.kubernetes.io/component is given by the chart, which finds its pods by it; leave it out",
    ),
    ({"redis": {"bundled": {"podLabels": {"helm.sh/chart": "x"}}}}, "redis.bundled.podLabels: helm.sh/chart is given"),
    # what the schema refuses
    ({"extraEnv": [{"name": "A", "value": 1}]}, "at '/extraEnv/0/value': got number, want string"),
    ({"extraEnv": [{"name": "A", "valu": "1"}]}, "at '/extraEnv/0': additional properties 'valu' not allowed"),
    ({"priorityClassName": "x: y"}, "at '/priorityClassName': 'x: y' does not match"),
    ({"lease": {"namespace": "a.b"}}, "at '/lease/namespace': 'a.b' does not match"),
    ({"board": {"enable": True}}, "at '/board': additional properties 'enable' not allowed"),
    ({"board": {"token": "0123456789abcdef"}}, "at '/board': additional properties 'token' not allowed"),
    ({"board": {"port": 80}}, "at '/board/port': minimum: got 80, want 1,024"),
    ({"board": {"pathPrefix": "oarlock/"}}, "at '/board/pathPrefix': 'oarlock/' does not match"),
    ({"board": {"host": "board.example"}}, "at '/board/host': got string, want array"),
    ({"board": {"host": ["https://board.example"]}}, "at '/board/host/0': 'https://board.example' does not match"),
    ({"board": {"tokenSecret": "A B"}}, "at '/board/tokenSecret': 'A B' does not match"),
    ({"networkPolicy": {"boardFrom": [{"pods": {}}]}}, "at '/networkPolicy/boardFrom/0'"),
    ({"ingestr": {}}, "additional properties 'ingestr' not allowed"),
    ({"worker": {"replica": 2}}, "at '/worker': additional properties 'replica' not allowed"),
    ({"ingestor": {"replicas": "2"}}, "at '/ingestor/replicas': got string, want integer"),
    ({"ingestor": {"replicas": 0}}, "at '/ingestor/replicas': minimum: got 0, want 1"),
    ({"worker": {"terminationGracePeriodSeconds": 25}}, "GracePeriodSeconds': minimum: got 25, want 26"),
    ({"worker": {"autoscaling": {"mode": "on"}}}, "at '/worker/autoscaling/mode': value must be one of"),
    ({"redis": {"mode": "sentinels"}}, "at '/redis/mode': value must be one of"),
    ({"redis": {"hosts": ["redis"]}}, "at '/redis/hosts/0': 'redis' does not match"),
    ({"redis": {"hosts": ["redis:65536"]}}, "at '/redis/hosts/0': 'redis:65536' does not match"),
    ({"redis": {"hosts": ["redis:0"]}}, "at '/redis/hosts/0': 'redis:0' does not match"),
    ({"redis": {"password": "secret"}}, "at '/redis': additional properties 'password' not allowed"),
    ({"redis": {"existingSecret": "Has Capitals"}}, "at '/redis/existingSecret': 'Has Capitals' does not match"),
    ({"redis": {"bundled": {"maxmemory": "lots"}}}, "at '/redis/bundled/maxmemory': 'lots' does not match"),
    ({"image": {"digest": "latest"}}, "at '/image/digest': 'latest' does not match"),
    ({"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1"]}}}, "at '/networkPolicy/apiServer/cidrs/0'"),
    ({"networkPolicy": {"apiServer": {"ports": []}}}, "at '/networkPolicy/apiServer/ports'"),
    ({"settings": {"api_qps": 1}}, "'api_qps' does not match"),
    ({"metrics": {"port": 80}}, "at '/metrics/port': minimum: got 80, want 1,024"),
    ({"shards": 0}, "at '/shards': minimum: got 0, want 1"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "said"), CASES, ids=lambda part: part[:50] if isinstance(part, str) else "")
def test_refused_in_a_line_that_names_it(values: Mapping[str, Any], said: str) -> None:
    with pytest.raises(Refused) as told:
        render(merged(NEEDED, values))
    assert any(said in line for line in str(told.value).splitlines()), told.value


def test_the_values_of_the_chart_alone_are_refused() -> None:
    """There is nothing to log in with, so nothing is made."""
    with pytest.raises(Refused, match=r"there are no default passwords"):
        render({})


def test_the_least_that_is_needed_is_taken() -> None:
    assert render(NEEDED).of("StatefulSet")


def test_the_settings_that_the_chart_knows_are_those_that_there_are() -> None:
    """Each is either taken, or refused because another value of the chart says it."""
    bounded = {controller.concurrent_syncs for controller in CONTROLLERS.values()}
    for name in setting_names():
        values = merged(NEEDED, {"settings": {name.upper(): 1}})
        try:
            env, refusal = render(values).env("worker"), ""
        except Refused as refused:
            env, refusal = {}, str(refused)
        assert env.get(f"OARLOCK_{name.upper()}") == "1" or (
            f"settings.{name.upper()} is set by another value" in refusal and name not in bounded
        )
