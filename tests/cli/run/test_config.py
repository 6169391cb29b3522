"""`oarlock config`: every setting, its value, and whether a flag, the environment or nobody gave it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from oarlock.cli import cli
from oarlock.cli.options.setting_options import SETTINGS, flag, told
from oarlock.cli.run.ingest import ingest
from oarlock.cli.run.worker import worker
from oarlock.workers.process.settings import Settings, setting_names


def rows(*arguments: str, **environment: str) -> dict[str, dict[str, str]]:
    told = CliRunner().invoke(cli, ["config", "-o", "json", *arguments], env=environment, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    return {row["setting"]: row for row in json.loads(told.output)}


def test_every_setting_is_told_of() -> None:
    assert {*SETTINGS, "concurrent_syncs"} == set(Settings.__annotations__)
    assert list(rows()) == setting_names()
    assert {"concurrent_replicaset_syncs", "concurrent_rc_syncs", "concurrent_daemonset_syncs"} < set(setting_names())
    assert all(row["from"] == "default" for row in rows().values())


def test_a_flag_goes_before_the_environment() -> None:
    found = rows("--kube-api-qps", "50", OARLOCK_KUBE_API_QPS="10", OARLOCK_LEASE_MS="6000")
    assert (found["kube_api_qps"]["value"], found["kube_api_qps"]["from"]) == ("50.0", "--kube-api-qps")
    assert (found["lease_ms"]["value"], found["lease_ms"]["from"]) == ("6000", "OARLOCK_LEASE_MS")


@pytest.mark.parametrize("name", ["redis_url", "rq_redis_url"])
def test_no_password_is_shown(name: str) -> None:
    found = rows(**{f"OARLOCK_{name.upper()}": "redis://worker:secret@redis:6379/0"})
    assert found[name]["value"] == "redis://worker:***@redis:6379/0"


def test_flags_that_upstream_has_are_called_as_there() -> None:
    shared = {name: told(name).upstream for name in setting_names() if told(name).upstream}
    assert {name: flag(name) for name in shared} == shared
    assert set(shared.values()) >= {"--controllers", "--concurrent-replicaset-syncs", "--kube-api-qps", "--kubeconfig"}


def test_worker_and_ingestor_take_every_flag() -> None:
    """Read off the commands themselves, so that none is only talked about."""
    taken = {word for option in worker.params for word in option.opts}
    taken |= {word for option in ingest.params for word in option.opts}
    assert {flag(name) for name in SETTINGS} <= taken


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lease-ms", "100"], "--lease-ms=100 must be more than 3000"),
        (["--renew-every-ms", "9000"], "OARLOCK_LEASE_MS=5000 must be more than 27000"),
        (["--kube-api-qps", "-1"], "--kube-api-qps=-1.0 is out of range"),
        (["--kube-api-qps", "fast"], "'fast' is not a valid float"),
    ],
)
def test_bad_values_are_named_as_they_were_given(arguments: list[str], said: str) -> None:
    told = CliRunner().invoke(cli, ["config", *arguments])
    assert told.exit_code == 2
    assert said in told.output
    assert len(told.output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("environment", "arguments", "said"),
    [
        ({"OARLOCK_CONTROLLERS": "foo"}, (), "OARLOCK_CONTROLLERS=foo: there is no 'foo'; there are *, replicaset"),
        ({}, ("--controllers", "foo"), "--controllers=foo: there is no 'foo'"),
        ({"OARLOCK_METRICS_BIND_ADDRESS": "a:b:1"}, (), "OARLOCK_METRICS_BIND_ADDRESS 'a:b:1' is no address; give"),
        ({}, ("--metrics-bind-address", ":x"), "--metrics-bind-address ':x': 'x' is no port; give HOST:PORT"),
        ({}, ("--metrics-bind-address", ":65535", "--shards", "2"), "--metrics-bind-address :65535: there is no port"),
        ({"OARLOCK_LEASE_NAMESPACE": "A_b"}, (), "OARLOCK_LEASE_NAMESPACE=A_b cannot be a namespace: give small"),
        ({}, ("--lease-namespace", ""), "--lease-namespace= cannot be a namespace: give small letters"),
        ({"OARLOCK_FLEET_ID": "a\nb"}, (), r"OARLOCK_FLEET_ID='a\nb' cannot name a fleet: give ASCII signs"),
        ({"OARLOCK_REDIS_URL": "http://a"}, (), "OARLOCK_REDIS_URL 'http://a': unknown scheme 'http'"),
        ({}, ("--rq-redis", "redis://:secret@a:x"), "--rq-redis 'redis://:***@a:x': 'x' is no port"),
        ({"OARLOCK_RQ_REDIS_URL": "redis+cluster://a:1"}, (), "RQ cannot keep its keys in a cluster (a:1)"),
    ],
)
def test_what_the_fleet_would_refuse_is_refused(
    environment: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    told = CliRunner().invoke(cli, ["config", *arguments], env=environment)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.startswith(f"oarlock: {said}")
    assert len(told.stderr.splitlines()) == 1


def test_a_cluster_alone_is_well_for_an_ingestor() -> None:
    assert rows("--redis", "redis+cluster://a:1")["redis_url"]["value"] == "redis+cluster://a:1"


def test_the_names_of_an_operators_controllers_are_not_known_here() -> None:
    assert rows("--operator", "site.py", OARLOCK_CONTROLLERS="site")["controllers"]["value"] == "site"
