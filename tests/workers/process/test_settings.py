"""Settings come from the environment, and say in one line what is wrong with it."""

from __future__ import annotations

import pytest

from oarlock.workers.process.settings import BadSetting, Settings


def test_nothing_given() -> None:
    """The figures of the protocol: D = lease + two requests + 1 s of residue."""
    settings = Settings.from_env({})
    assert settings == Settings()
    assert (settings.lease_ms, settings.request_timeout_ms, settings.drain_ms) == (5_000, 4_000, 14_000)
    assert (settings.kube_api_qps, settings.kube_api_burst) == (20.0, 30), "as upstream's"
    assert (settings.batch_keys, settings.batch_bytes) == (8, 262_144)


def test_of_every_type() -> None:
    given = {
        "OARLOCK_REDIS_URL": "redis://other:6380/1",
        "OARLOCK_LEASE_MS": "6000",
        "OARLOCK_KUBE_API_QPS": "12.5",
        "OARLOCK_TERMINATING_REPLICAS": "False",
        "OARLOCK_STATE_DIR": "not one of them",
        "LEASE_MS": "1",
    }
    settings = Settings.from_env(given)
    assert settings == Settings("redis://other:6380/1", lease_ms=6_000, kube_api_qps=12.5, terminating_replicas=False)


def test_from_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARLOCK_BATCH_KEYS", "3")
    assert Settings.from_env().batch_keys == 3


@pytest.mark.parametrize("word", ["true", "True", "1"])
def test_yes(word: str) -> None:
    assert Settings.from_env({"OARLOCK_TERMINATING_REPLICAS": word}).terminating_replicas is True


@pytest.mark.parametrize("word", ["false", "FALSE", "0"])
def test_no(word: str) -> None:
    assert Settings.from_env({"OARLOCK_TERMINATING_REPLICAS": word}).terminating_replicas is False


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(kubeconfig="/a b/c", kube_api_qps=0.0, terminating_replicas=False, fleet_id="blue", slow_turn_ms=0),
        Settings(lease_ms=1_000, renew_every_ms=100, request_timeout_ms=10_000, turn_limit_ms=100, stall_ms=101),
    ],
)
def test_there_and_back(settings: Settings) -> None:
    """What a child is started with is what its parent had."""
    assert Settings.from_env(settings.to_env()) == settings


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("LEASE_MS", "soon", "OARLOCK_LEASE_MS='soon' is not a int"),
        ("LEASE_MS", "", "OARLOCK_LEASE_MS='' is not a int"),
        ("LEASE_MS", "5e3", "OARLOCK_LEASE_MS='5e3' is not a int"),
        ("KUBE_API_QPS", "many", "OARLOCK_KUBE_API_QPS='many' is not a float"),
        ("TERMINATING_REPLICAS", "perhaps", "OARLOCK_TERMINATING_REPLICAS='perhaps' is not a bool"),
        ("WRITES_IN_FLIGHT", "0", "OARLOCK_WRITES_IN_FLIGHT=0 is out of range: it is at least 1"),
        ("BATCH_KEYS", "-1", "OARLOCK_BATCH_KEYS=-1 is out of range: it is at least 1"),
        ("KUBE_API_QPS", "-0.5", "OARLOCK_KUBE_API_QPS=-0.5 is out of range: it is at least 0"),
        ("KUBE_API_QPS", "nan", "OARLOCK_KUBE_API_QPS=nan is out of range: it is at least 0"),
        ("KUBE_API_QPS", "inf", "OARLOCK_KUBE_API_QPS=inf is out of range: it is at most 2147483647"),
        (
            "REQUEST_TIMEOUT_MS",
            "9" * 20,
            f"OARLOCK_REQUEST_TIMEOUT_MS={'9' * 20} is out of range: it is at most 2147483647",
        ),
        (
            "LEASE_MS",
            "3000",
            "OARLOCK_LEASE_MS=3000 must be more than 3000, three renew_every_ms: two lost renewals do not lose it",
        ),
        (
            "STALL_MS",
            "45000",
            "OARLOCK_STALL_MS=45000 must be more than 45000,"
            " turn_limit_ms: a turn ends itself before its supervisor does",
        ),
        (
            "FLEET_API_QPS_MIN",
            "5",
            "OARLOCK_FLEET_API_QPS_MIN=5.0 is more than OARLOCK_FLEET_API_QPS=0.0: it is the least that remains of it",
        ),
        ("FLEET_API_IN_FLIGHT", "5", "OARLOCK_FLEET_API_IN_FLIGHT=5 needs OARLOCK_FLEET_API_QPS, too"),
        (
            "SEND_MARGIN_MS",
            "5000",
            "OARLOCK_LEASE_MS=5000 must be more than 5000, send_margin_ms: what is announced has time to be sent",
        ),
    ],
)
def test_bad_input(name: str, text: str, says: str) -> None:
    with pytest.raises(BadSetting) as error:
        Settings.from_env({f"OARLOCK_{name}": text})
    assert str(error.value) == says


def test_they_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().lease_ms = 1  # type: ignore[misc]


OPERATORS = {
    "another name": ({"OARLOCK_FLEET_ID": "Site_1"}, "OARLOCK_FLEET_ID=Site_1 cannot name the fleet of an operator"),
    "a number": ({"OARLOCK_FLEET_ID": "7"}, "OARLOCK_FLEET_ID=7 cannot name the fleet of an operator"),
    "divided": ({"OARLOCK_SHARDS": "2", "OARLOCK_FLEET_ID": "site"}, "OARLOCK_SHARDS=2: the fleet of an operator is"),
}


@pytest.mark.parametrize(("given", "line"), OPERATORS.values(), ids=list(OPERATORS))
def test_an_operator_that_cannot_be(given: dict[str, str], line: str) -> None:
    with pytest.raises(BadSetting, match=line):
        Settings.from_env({**given, "OARLOCK_OPERATOR": "site.py"})


def test_the_fleet_of_an_operator_has_a_lease_and_keys_of_its_own() -> None:
    ours = Settings.from_env({"OARLOCK_OPERATOR": "site.py", "OARLOCK_FLEET_ID": "site"})
    assert (ours.tag, ours.tags, ours.serves) == ("site", ("site",), "0")
    assert (Settings(fleet_id="site").tag, Settings(shards=2, shard="1").tag) == ("0", "1")
    assert Settings(shards=2).tags == ("0", "1")
    assert Settings.from_env(ours.to_env()) == ours
