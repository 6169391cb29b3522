"""The inspection commands against a real Redis with a planted state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.keys import Keys
from oarlock.broker.memory.state import OPEN_TTL_MS
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits
from oarlock.broker.values.turns import Entry, Finish, Verdict
from oarlock.controllers.objects.model import OwnerRef, Pod, ReplicaSet, ReplicaSetStatus
from oarlock.controllers.registry import CONTROLLERS, WATCHED, all_queues
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.turn.engine.turn_engine import load_spec
from tests.cli.cli_helpers import call, problems, stored

QUEUE = "replicaset"
WEB = ReplicaSet("default", "web", "uid-web", 1, 3, None, b'{"spec":{}}', {"app": "web"}, created_ms=1)
IDLE = ReplicaSet("shop", "idle", "uid-idle", 1, 1, None, b"{}", {}, status=ReplicaSetStatus(1, 1, 1, 1, 0, 1))
POD = Pod(
    "shop",
    "idle-abcde",
    "node-1",
    phase="Running",
    owner_refs=(OwnerRef("apps/v1", "ReplicaSet", "idle", "uid-idle", True),),
    uid="uid-pod",
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """default/web is in work with two unanswered creates; shop/queued, /later, /bad: queued, delayed, parked."""
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as server:
        client = connect(server.url("admin"))
        epoch.bootstrap(client, 3)
        broker = RedisBroker(client, 3)
        for resource, objects in (("replicasets", (WEB, IDLE)), ("pods", (POD,))):
            events = [stored(WATCHED[resource], each) for each in objects]
            broker.stage(resource, "g1", events)
            assert broker.commit_list(resource, "g1", "12").verdict == "OK"
        while broker.republish():
            pass
        assert broker.open(["replicasets", "pods"]) == ""
        for holder in ("w-a", "w-b"):
            broker.register(holder, "s", [QUEUE])
        drain(broker)
        plant(broker)
        yield server
        client.close()


def drain(broker: RedisBroker) -> None:
    while isinstance(batch := claim(broker, "w-b", 8), Batch):
        broker.finish([Finish(QUEUE, each.key, each.nonce, Verdict.OK) for each in batch.claims])


def claim(broker: RedisBroker, holder: str, count: int) -> Any:
    spec = load_spec(CONTROLLERS[QUEUE])
    return broker.claim(holder, f"nonce-{holder}", [spec], ClaimLimits(lease_ms=600_000, drain_ms=1000, keys_max=count))


def plant(broker: RedisBroker) -> None:
    for holder in ("w-c1", "w-c2", "w-c3"):  # each dies over shop/bad: the second death parks it
        broker.add(QUEUE, ["shop/bad"], unpark=True)
        broker.register(holder, "s", [QUEUE])
        if isinstance(claim(broker, holder, 1), Batch):
            broker.release(holder, blamed=f"{QUEUE}:shop/bad")
        if holder == "w-c2":
            break
    broker.add(QUEUE, ["default/web"])
    batch = claim(broker, "w-a", 1)
    assert isinstance(batch, Batch)
    assert batch.claims[0].key == "default/web"
    broker.announce(
        batch.claims[0],
        "uid-web",
        [Entry("create", "pods/web-11111"), Entry("create", "pods/web-22222")],
        lease_ms=600_000,
    )
    broker.add(QUEUE, ["shop/queued"])
    broker.add_after(QUEUE, "shop/later", 3_600_000)


def ask(server: EmbeddedRedis, *arguments: str) -> Any:
    result = call(*arguments, "--redis", server.url("metrics"), "-o", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def table(server: EmbeddedRedis, *arguments: str) -> list[list[str]]:
    result = call(*arguments, "--redis", server.url("metrics"))
    assert result.exit_code == 0, result.stderr
    return [line.split() for line in result.stdout.splitlines()]


def test_queue(planted: EmbeddedRedis) -> None:
    rows = {row["name"]: row for row in ask(planted, "queue")}
    assert rows.keys() == set(all_queues())
    row = rows[QUEUE]
    oldest_ms = row.pop("oldest_age_ms")
    assert oldest_ms >= 0
    assert row == {"name": QUEUE, "queued": 1, "in_work": 1, "delayed": 1, "parked": 1, "failing": 0, "held": 0}
    head, *lines = table(planted, "queue")
    assert head == ["CONTROLLER", "QUEUED", "IN", "WORK", "DELAYED", "PARKED", "FAILING", "OLDEST"]
    assert [QUEUE, "1", "1", "1", "1", "0"] in [line[:6] for line in lines]


def test_queue_keys(planted: EmbeddedRedis) -> None:
    rows = ask(planted, "queue", "--keys")
    assert {(row["key"], row["state"]) for row in rows} == {
        ("default/web", "running"),
        ("shop/queued", "queued"),
        ("shop/bad", "parked"),
        ("shop/later", "delayed"),
    }
    assert {row["key"] for row in ask(planted, "queue", "-n", "default")} == {"default/web"}


def test_locks(planted: EmbeddedRedis) -> None:
    (row,) = ask(planted, "locks")
    assert (row["key"], row["holder"], row["nonce"]) == ("default/web", "w-a", "nonce-w-a")
    assert 0 < row["remaining_ms"] <= 600_000
    assert row["age_ms"] >= 0
    assert ask(planted, "locks", "-n", "shop") == []
    assert call("locks", "-n", "shop", "--redis", planted.url("metrics")).stdout == "no key is locked\n"


def test_expectations(planted: EmbeddedRedis) -> None:
    (row,) = ask(planted, "expectations")
    assert (row["key"], row["owner_uid"]) == ("default/web", "uid-web")
    assert [entry["what"] for entry in row["entries"]] == ["create pods/web-11111", "create pods/web-22222"]
    assert all(entry["state"].startswith("pending since_ms=") for entry in row["entries"])
    assert 300_000 < row["ttl_ms"] <= OPEN_TTL_MS  # an open write outlives the rest
    (same,) = ask(planted, "expectations", "web")
    assert [each["state"] for each in same["entries"]] == [each["state"] for each in row["entries"]]
    assert ask(planted, "expectations", "shop/idle") == []


@pytest.fixture
def stuck(planted: EmbeddedRedis) -> Iterator[str]:
    """The key of an owner with a write that stays without an answer, and names that it cannot have for now."""
    client = connect(planted.url("admin"))
    seconds, micros = client.time()
    name, now_ms = Keys(3).expect(QUEUE, "shop/idle"), seconds * 1000 + micros // 1000
    sent = f"pending since_ms={now_ms - 125_000} sent_ms={now_ms - 4_000} tries=6"
    fields = {
        "owner": "uid-idle",
        "create pods/idle-11111": f"{sent} until_ms={now_ms + 100_000}",
        "reserved pods/idle-11111": f"until_ms={now_ms + 100_000}",
        "reserved pods/idle-22222": f"until_ms={now_ms + 100_000}",
        "passed pods/idle-33333": f"until_ms={now_ms + 100_000}",
        "rest pods/idle-44444": "uid=u4",
        "said": "create pods/idle-11111: \x1b[31mout of order",
    }
    client.hset(name, mapping=fields)
    yield "shop/idle"
    client.delete(name)
    client.close()


def test_a_write_that_stays_without_an_answer(planted: EmbeddedRedis, stuck: str) -> None:
    facts = ask(planted, "explain", stuck)
    text = " ".join(facts["sentences"])
    sent = r"1 create has no answer yet: idle-11111 \(sent 6 times in 2m\d\ds, the last time \d+\.\ds ago"
    assert re.search(sent, text), text
    assert "The last answer that proved nothing: create pods/idle-11111: \\u001b[31mout of order." in text
    assert "1 name is reserved, as a create that was sent may still take it: idle-22222 (for another 1m" in text
    assert "idle-33333 (for another 1m" in text
    assert "1 name rests, as its pod has failed: idle-44444 (until that has gone)." in text
    (row,) = ask(planted, "expectations", stuck)
    assert facts["said"] == row["said"] == "create pods/idle-11111: \x1b[31mout of order"
    entries = {each.pop("what"): each for each in row["entries"]}
    assert {each.pop("what") for each in facts["entries"]} == entries.keys()
    create = entries["create pods/idle-11111"]
    assert create["tries"] == 6
    assert 125_000 <= create["age_ms"] < 185_000
    assert 4_000 <= create["sent_ago_ms"] < 64_000
    assert 40_000 < create["left_ms"] <= 100_000
    assert entries["rest pods/idle-44444"]["left_ms"] is None


def test_expectations_as_people_read_them(planted: EmbeddedRedis, stuck: str) -> None:
    lines = [" ".join(words) for words in table(planted, "expectations", stuck)]
    said = "said create pods/idle-11111: \\u001b[31"
    for each in ("no answer: sent 6 times in 2m", "for another 1m", "until that has gone", said):
        assert any(each in line for line in lines), each


def test_get_lists_and_decodes_projections(planted: EmbeddedRedis) -> None:
    rows = ask(planted, "get", "rs")
    assert [(row["namespace"], row["name"], row["replicas"], row["rv"]) for row in rows] == [
        ("default", "web", 3, "10"),
        ("shop", "idle", 1, "10"),
    ]
    assert rows[0]["template"] == {"spec": {}}
    assert [row["name"] for row in ask(planted, "get", "ReplicaSet", "-n", "shop")] == ["idle"]
    pod = ask(planted, "get", "pod", "shop/idle-abcde")
    assert (pod["uid"], pod["owner_refs"][0]["name"], pod["node_name"]) == ("uid-pod", "idle", "node-1")
    head, line = table(planted, "get", "pods")
    assert head[:4] == ["NAMESPACE", "NAME", "PHASE", "READY"]
    assert line[:6] == ["shop", "idle-abcde", "Running", "no", "node-1", "ReplicaSet/idle"]


def test_get_of_something_that_is_not_there(planted: EmbeddedRedis) -> None:
    result = call("get", "rs", "default/wbe", "--redis", planted.url("metrics"))
    assert result.exit_code == 1
    (line,) = problems(result)
    assert "ReplicaSet default/wbe is not in the cache (the cache is at revision 12" in line


def test_explain_a_key_in_work(planted: EmbeddedRedis) -> None:
    facts = ask(planted, "explain", "default/web")
    text = " ".join(facts["sentences"])
    assert "ReplicaSet default/web asks for 3 pods and has 0 in the cache (resourceVersion 10)" in text
    assert "w-a is working on it since" in text
    assert "2 creates have no answer yet: web-11111 (sent " in text
    assert (facts["state"], facts["phase"], facts["epoch"]) == ("running", "OPEN", 3)
    assert facts["object"]["name"] == "web"


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("shop/idle", "All is as it should be: there is nothing to do."),
        ("shop/queued", "It is queued: it is the next one."),
        ("shop/later", "A delayed turn comes in 59m"),
        ("shop/bad", "It is parked, because workers died while working on it"),
        ("shop/nothing", "No ReplicaSet shop/nothing is in the cache"),
    ],
)
def test_explain(planted: EmbeddedRedis, key: str, told: str) -> None:
    assert told in call("explain", key, "--redis", planted.url("metrics")).stdout


@pytest.mark.parametrize(
    "words",
    [
        ["default/web"],
        ["web"],
        ["web", "-n", "default"],
        ["replicaset/default/web"],
        ["rs/default/web"],
        ["replicasets.apps/default/web", "-n", "default"],
        ["rs/web", "-n", "default"],
        ["ReplicaSet/web", "-n", "default", "-c", "replicaset"],
        ["default/web", "-n", "default"],
    ],
    ids=" ".join,
)
def test_a_key_may_have_its_kind_before_it(planted: EmbeddedRedis, words: list[str]) -> None:
    assert ask(planted, "explain", *words)["key"] == "default/web"
    (row,) = ask(planted, "expectations", *words)
    assert row["key"] == "default/web"
    again = call("requeue", *words, "--redis", planted.url("admin"))
    assert (again.exit_code, again.stdout.partition(":")[0]) == (0, "default/web"), again.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["rs/crunch"],
            "ReplicaSet rs/crunch",
        ),  # two parts without --namespace are namespace/name, whatever they are called
        (["ds/default/web"], "DaemonSet default/web"),
        (["rc/default/web"], "ReplicationController default/web"),
    ],
    ids=" ".join,
)
def test_a_kind_before_a_key_is_believed(planted: EmbeddedRedis, words: list[str], told: str) -> None:
    said = call("explain", *words, "--redis", planted.url("metrics")).stdout
    assert f"No {told} is in the cache" in said


def test_epoch(planted: EmbeddedRedis) -> None:
    facts = ask(planted, "epoch")
    assert (facts["epoch"], facts["phase"], facts["intact"]) == (3, "OPEN", True)
    assert {each["resource"]: (each["rv"], each["objects"]) for each in facts["resources"]} == {
        "replicasets": ("12", 2),
        "pods": ("12", 1),
    }


def test_epoch_names_the_ingestor_that_is_deaf(planted: EmbeddedRedis) -> None:
    client = connect(planted.url("admin"))
    broker = RedisBroker(client, 3)
    broker.report("ingestor-a", "nodes=200 pods=300")
    broker.report("ingestor-b", "deaf=pods nodes=200 pods=90000")
    try:
        (well, deaf) = ask(planted, "epoch")["ingestors"]
        assert (well["ingestor"], well["deaf"]) == ("ingestor-a", [])
        assert (deaf["ingestor"], deaf["deaf"]) == ("ingestor-b", ["pods"])
        assert deaf["silent_ms"]["pods"] >= 90_000
        for command in (["epoch"], ["top", "--once"]):
            told = call(*command, "--redis", planted.url("admin")).stdout
            assert "ingestor-b is deaf: it hears nothing of pods for 1m30s; another ingestor hears it" in told, command
        assert "pods 1m30s" in call("epoch", "--redis", planted.url("admin")).stdout
    finally:
        for name in ("ingestor-a", "ingestor-b"):
            broker.report(name, "")
        client.close()


def test_a_hold_is_shown_and_ended(planted: EmbeddedRedis) -> None:
    url = planted.url("admin")
    client = connect(url)
    RedisBroker(client, 3).pause("k created pod x/y")
    client.close()
    facts = json.loads(call("epoch", "--redis", url, "-o", "json").output)
    assert (facts["phase"], facts["paused"], facts["held"]) == ("HELD", *["k created pod x/y"] * 2)
    for command in (["epoch"], ["queue"], ["explain", "shop/idle"]):
        assert "k created pod x/y" in call(*command, "--redis", url).output, command
    assert call("resume", "--redis", url).output == "resumed, phase OPEN; it was paused: k created pod x/y\n"
    assert call("resume", "--redis", url).output == "it was not paused, phase OPEN\n"


def test_requeue(planted: EmbeddedRedis) -> None:
    admin = planted.url("admin")
    assert call("requeue", "shop/idle", "--redis", admin).stdout == "shop/idle: queued\n"
    assert call("requeue", "shop/idle", "--redis", admin).stdout == "shop/idle: nothing to add, it is queued already\n"
    unknown = call("requeue", "shop/nothing", "--redis", admin)
    assert unknown.exit_code == 2
    assert "shop/nothing: not among the cached replicasets" in problems(unknown)[0]
    assert call("requeue", "shop/bad", "--force", "--redis", admin).stdout == "shop/bad: queued\n"
    assert not any(row["state"] == "parked" for row in ask(planted, "queue", "--keys"))


def test_a_user_who_may_not(planted: EmbeddedRedis) -> None:
    result = call("requeue", "default/web", "--redis", planted.url("metrics"))
    assert result.exit_code == 2
    (line,) = problems(result)
    assert "may not do this" in line


def test_a_state_dir_instead_of_a_url(planted: EmbeddedRedis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from oarlock.sandbox.up.state_dir import StateDir

    StateDir(tmp_path).write_redis_url(planted.url("metrics"))
    monkeypatch.setattr(StateDir, "owner_pid", lambda self: 1)
    assert call("epoch", "--state-dir", str(tmp_path)).stdout.startswith("epoch 3, OPEN\n")
