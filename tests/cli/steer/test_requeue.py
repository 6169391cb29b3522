"""`oarlock requeue` of many keys: what is picked, that it is asked for, and that it does not flood the queue."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.cli.nodes import node_api
from oarlock.cli.steer import many
from oarlock.cluster.access import config
from oarlock.cluster.client import Client
from oarlock.cluster.resources import NAMESPACES, REPLICASETS
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests import ROOT
from tests.cli.steer.steer_cases import QUEUE, cached, claimed, oarlock, refused


def queued(broker: RedisBroker, queue: str = QUEUE) -> list[str]:
    return [entry[1][b"key"].decode() for entry in broker._client.xrange(broker.keys.stream(queue))]


@pytest.mark.parametrize(
    ("words", "picked"),
    [
        (("-n", "shop"), {QUEUE: ["shop/a", "shop/b"], "daemonset": ["shop/d"]}),
        (("-n", "shop", "-c", QUEUE), {QUEUE: ["shop/a", "shop/b"]}),
        (("-c", QUEUE), {QUEUE: ["bank/c", "shop/a", "shop/b"]}),
        (("--all",), {QUEUE: ["bank/c", "shop/a", "shop/b"], "daemonset": ["shop/d"]}),
        (("-n", "nobody"), {}),
        (("--failing",), {}),
    ],
)
def test_what_is_picked(
    words: tuple[str, ...], picked: dict[str, Any], server: EmbeddedRedis, broker: RedisBroker
) -> None:
    cached(broker, "shop/a", "shop/b", "bank/c")
    cached(broker, "shop/d", resource="daemonsets")
    count = sum(map(len, picked.values()))
    told = json.loads(oarlock(server, "requeue", *words, "--preview", "-o", "json"))
    assert told == {"selected": count, "queued": 0, "queues": {q: len(k) for q, k in picked.items()}, "keys": picked}
    assert queued(broker) == queued(broker, "daemonset") == []
    told = json.loads(oarlock(server, "requeue", *words, "-o", "json"))
    assert told == {"selected": count, "queued": count, "queues": {q: len(k) for q, k in picked.items()}}
    assert {QUEUE: queued(broker), "daemonset": queued(broker, "daemonset")} == {QUEUE: [], "daemonset": [], **picked}


def test_what_fails_or_is_parked(server: EmbeddedRedis, broker: RedisBroker) -> None:
    cached(broker, "shop/a", "shop/b", "shop/c")
    broker.add(QUEUE, ["shop/a"])
    claimed(broker)
    broker.finish([Finish(QUEUE, "shop/a", "n", Verdict.RETRY)])
    for turn in range(2):
        broker.register(f"x{turn}", "s", [QUEUE])
        broker.add(QUEUE, ["shop/b"])
        assert claimed(broker, f"x{turn}") == ["shop/b"]
        broker.release(f"x{turn}", blamed=f"{QUEUE}:shop/b")
    for words, keys in (
        (("--failing",), ["shop/a"]),
        (("--parked",), ["shop/b"]),
        (("--failing", "--parked"), ["shop/a", "shop/b"]),
    ):
        assert json.loads(oarlock(server, "requeue", *words, "--preview", "-o", "json"))["keys"] == {QUEUE: keys}
    said = oarlock(server, "requeue", "--failing", "--parked", "-n", "shop", "--by", "me")
    assert said == "2 of replicaset (shop/a, shop/b): 2 queued\n"
    assert queued(broker) == ["shop/a", "shop/b"]
    assert "requeue 2 keys, -n shop --failing --parked: by=me" in oarlock(server, "audit")
    assert oarlock(server, "requeue", "--failing").endswith("(shop/a): 0 queued; 1 are in work, or wait already\n")


def test_many_are_asked_for(server: EmbeddedRedis, broker: RedisBroker) -> None:
    cached(broker, *(f"shop/{n:02}" for n in range(21)))
    assert "21 keys would be queued: add --yes, or see which with --preview" in refused(server, "requeue", "--all")
    assert queued(broker) == []
    oarlock(server, "requeue", "--all", "--yes")
    assert len(queued(broker)) == 21


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 21), ("n\n", 130, 0)])
def test_a_person_may_agree(
    answer: str, code: int, left: int, server: EmbeddedRedis, broker: RedisBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached(broker, *(f"shop/{n:02}" for n in range(21)))
    monkeypatch.setattr(many, "_may_answer", lambda: True)
    oarlock(server, "requeue", "--all", code=code, stdin=answer)
    assert len(queued(broker)) == left


def test_they_are_queued_no_faster_than_they_are_taken(
    server: EmbeddedRedis, broker: RedisBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "PAGE", 10)
    monkeypatch.setattr(many, "BACKLOG", 20)
    cached(broker, *(f"shop/{n:03}" for n in range(95)))
    longest = 0

    def workers_take_some(_: float) -> None:
        nonlocal longest
        longest = max(longest, len(queued(broker)))
        for key in claimed(broker):
            broker.finish([Finish(QUEUE, str(key), "n", Verdict.OK)])

    monkeypatch.setattr(many.time, "sleep", workers_take_some)
    assert json.loads(oarlock(server, "requeue", "--all", "--yes", "-o", "json"))["queued"] == 95
    assert 20 <= longest < 30


def test_where_nobody_takes_them_it_stops(
    server: EmbeddedRedis, broker: RedisBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "PAGE", 10)
    monkeypatch.setattr(many, "BACKLOG", 20)
    monkeypatch.setattr(many, "STUCK_S", 0.0)
    monkeypatch.setattr(many.time, "sleep", lambda _: None)
    cached(broker, *(f"shop/{n:03}" for n in range(95)))
    line = refused(server, "requeue", "--all", "--yes", code=1)
    assert "replicaset: 20 keys are queued and none is taken" in line
    assert "20 of 95 are done" in line
    assert len(queued(broker)) == 20


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "requeue what? name KEYs, or pick them with -l, -n, -c, --failing, --parked or --all"),
        (["shop/a", "--failing"], "--failing: with KEY nothing is picked"),
        (["shop/a", "-l", "app=web", "--all"], "--selector and --all: with KEY nothing is picked"),
        (["-l", "app=web"], "no `oarlock up` is running; start one, or name a cluster with --kubeconfig"),
    ],
)
@pytest.mark.usefixtures("broker")
def test_what_picks_nothing(
    words: list[str], told: str, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_api, "found_up", lambda: None)
    assert told in refused(server, "requeue", *words)


def test_one_key_as_json(server: EmbeddedRedis, broker: RedisBroker) -> None:
    cached(broker, "shop/a")
    told = json.loads(oarlock(server, "requeue", "rs/shop/a", "-o", "json"))
    assert told == [{"queue": QUEUE, "key": "shop/a", "added": True, "state": "queued"}]
    assert oarlock(server, "requeue", "rs/shop/a", "--preview") == "shop/a: would be queued\n"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of an API server."""
    folder = tmp_path_factory.mktemp("api")
    command = [sys.executable, "-m", "oarlock.sandbox.apiserver", "--state-dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        yield Path(json.loads(process.stdout.readline())["kubeconfig"])
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.fixture(scope="module")
def labelled(kubeconfig: Path) -> Path:
    """Three ReplicaSets with labels in two namespaces."""

    async def create() -> None:
        async with Client(config.load(str(kubeconfig))) as client:
            for namespace in ("shop", "bank"):
                assert (await client.create(NAMESPACES, "", json.dumps({"metadata": {"name": namespace}}).encode())).ok
            for namespace, name, tier in (("shop", "a", "front"), ("shop", "b", "back"), ("bank", "c", "front")):
                template = {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                }
                spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
                body = {"metadata": {"name": name, "labels": {"app": "web", "tier": tier}}, "spec": spec}
                answer = await client.create(REPLICASETS, namespace, json.dumps(body).encode())
                assert answer.ok, answer.message

    asyncio.run(create())
    return kubeconfig


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("-l", "app=web"), ["bank/c", "shop/a", "shop/b"]),
        (("-l", "app=web,tier!=back"), ["bank/c", "shop/a"]),
        (("-l", "tier in (front)", "-n", "shop"), ["shop/a"]),
        (("-l", "tier", "-n", "bank"), ["bank/c"]),
        (("-l", "app=other"), []),
    ],
)
def test_labels(
    words: tuple[str, ...], keys: list[str], server: EmbeddedRedis, broker: RedisBroker, labelled: Path
) -> None:
    """Only what has the labels in the API, and is in the cache."""
    cached(broker, "shop/a", "shop/b", "bank/c", "bank/d")
    told = json.loads(
        oarlock(server, "requeue", *words, "-c", QUEUE, "-o", "json", "--preview", "--kubeconfig", str(labelled))
    )
    assert told["keys"] == ({QUEUE: keys} if keys else {})


def test_a_selector_that_the_server_does_not_take(server: EmbeddedRedis, broker: RedisBroker, labelled: Path) -> None:
    assert "--selector 'a=(b'" in refused(server, "requeue", "-l", "a=(b", "--kubeconfig", str(labelled))
