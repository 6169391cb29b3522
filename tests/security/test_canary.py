"""Words that nobody may repeat: in env, arguments, annotations, a token, passwords. A fleet of real processes
at their most talkative, with creates that are refused, and then all that it said and left behind is searched.

The same fleet signs its objects, with a key that nobody may repeat either, and one of them is tampered with.
"""

from __future__ import annotations

import base64
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from oarlock.broker import epoch, keys
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.objects import Cached
from oarlock.controllers.objects import codec
from oarlock.workers.process.log_line import discreet
from tests.e2e.e2e_helpers import ROOT, RunningUp, environment, oarlock, until

CANARY = "CANARYWORD"
KEY = base64.b64encode(bytes(range(50, 82))).decode()

MANIFEST = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: full}
spec: {hard: {pods: "0"}}
""" + "".join(
    f"""\
---
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}, namespace: {namespace}, annotations: {{note: {CANARY}}}}}
spec:
  {"replicas: 2" if kind == "ReplicaSet" else "updateStrategy: {type: RollingUpdate}"}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}, annotations: {{secret: {CANARY}}}}}
    spec:
      containers:
      - {{name: c, image: i, args: [--password={CANARY}], env: [{{name: PASSWORD, value: {CANARY}}}]}}
"""
    for kind, name, namespace in (
        ("ReplicaSet", "open", "default"),
        ("ReplicaSet", "refused", "full"),
        ("DaemonSet", "agent", "full"),
    )
)


class Told:
    """The fleet, and what it said: ``logs`` by process."""

    def __init__(self, folder: Path) -> None:
        (folder / "m.yaml").write_text(MANIFEST)
        self.key = folder / "signing.key"
        self.key.write_text(f"{KEY}\n")
        common = {"OARLOCK_SIGNING_KEY_FILE": str(self.key), "OARLOCK_FAILED_AFTER": "2"}
        arguments = ("--workers", "0", "--ingestors", "1", "--nodes", "2", "-f", str(folder / "m.yaml"))
        self.up = RunningUp(folder / "state", *arguments, **common)
        self.token = self.up.token()
        self.logs: dict[str, Path] = {}
        self.processes = []
        for name, words in (("ingest", ["ingest", "--embedded"]), ("worker", ["worker", "--workers", "1"])):
            self.logs[name] = folder / f"{name}.log"
            command = [
                sys.executable,
                "-m",
                "oarlock.cli",
                *words,
                "-vv",
                "--kubeconfig",
                str(self.up.state.kubeconfig),
            ]
            with self.logs[name].open("wb") as out:
                more = {**common, "OARLOCK_REDIS_URL": self.up.state.read_redis_url()}
                self.processes.append(
                    subprocess.Popen(command, stdout=out, stderr=out, env=environment(**more), cwd=ROOT)
                )

    def close(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        self.up.stop()

    def everything(self) -> dict[str, str]:
        """All logs, all of RQ's keys, all of ours but the cached objects and their templates."""
        found = {name: path.read_text(errors="replace") for name, path in self.logs.items()}
        found |= {path.name: path.read_text(errors="replace") for path in self.up.state.logs.glob("*")}
        found["up's stderr"] = self.up.err.read_text()
        client = self.up.redis()
        for name in client.scan_iter("*", count=1_000):
            if b":cache:" not in name and b":apart:" not in name:
                found[name.decode()] = (client.dump(name) or b"").decode("latin-1") + str(_value(client, name))
        return found


def _value(client: Any, name: bytes) -> object:
    match client.type(name):
        case b"string":
            return client.get(name)
        case b"hash":
            return client.hgetall(name)
        case b"set":
            return client.smembers(name)
        case b"zset":
            return client.zrange(name, 0, -1)
        case b"list":
            return client.lrange(name, 0, -1)
    return client.xrange(name)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    told = Told(tmp_path_factory.mktemp("canary"))
    client = told.up.redis()
    try:
        until(lambda: client.zcard("rq:failed:replicaset"), 40, "the refused creates are in the failed registry")
        until(lambda: ready(told).get("default/open") == (2, 2), 30, "the other pods are ready")
        yield told
    finally:
        for name, path in told.logs.items():
            print(f"--- {name}\n{path.read_text(errors='replace')[-3_000:]}")
        told.close()


def ready(told: Told) -> dict[str, tuple[int, int]]:
    """Key -> pods wanted and available, of the ReplicaSets in the cache."""
    client = told.up.redis()
    names = keys.Keys(epoch.current(client).epoch)
    generation = client.hget(names.of("generation"), "replicasets") or b"0"
    found = {}
    for name, value in client.hgetall(names.objects("replicasets", generation.decode())).items():  # type: ignore[union-attr]
        owner = codec.decode_replicaset(Cached.parse(value).blob)
        found[name.decode()] = owner.replicas, owner.status.available
    return found


def secrets_of(told: Told) -> list[str]:
    url = urlsplit(told.up.state.read_redis_url())
    assert url.password
    assert told.token
    return [CANARY, told.token, unquote(url.password), KEY, base64.b64decode(KEY).hex()]


def test_nothing_that_was_said_or_left_repeats_a_secret(told: Told) -> None:
    everything = told.everything()
    assert "turn_failed" in everything["worker"], "there was something to tell"
    assert "exceeded quota" in everything["worker"]
    assert any(name.startswith("rq:job:") for name in everything)
    assert len(everything["ingest"]) > 500
    for secret in secrets_of(told):
        assert [name for name, text in everything.items() if secret in text] == []


def test_no_command_that_looks_shows_one(told: Told) -> None:
    where = ("--state-dir", str(told.up.state.root))
    for words in (("explain", "full/refused"), ("get", "pods", "-o", "json")):
        done = oarlock(*words, *where)
        assert done.returncode == 0, done.stderr
        for secret in secrets_of(told):
            assert secret not in done.stdout + done.stderr, words


def test_an_object_that_was_tampered_with_is_refused_and_nothing_is_made_of_it(told: Told) -> None:
    """With all the rights in Redis, but without the key: a pod of one's choice, and a hundred of them."""
    client = told.up.redis()
    names = keys.Keys(epoch.current(client).epoch)
    generation = client.hget(names.of("generation"), "replicasets")
    assert isinstance(generation, bytes)
    cache = names.objects("replicasets", generation.decode())
    value = client.hget(cache, "default/open")
    assert isinstance(value, bytes)
    assert Cached.parse(value).signature, "it is signed"
    head, entries, wakes, blob = value.split(b"\n", 3)
    assert codec.decode_replicaset(blob).replicas == 2
    evil = blob.replace(b'"image":"i"', b'"image":"e"').replace(b"\x02", b"\x64", 1)
    assert evil != blob
    client.hset(cache, "default/open", b"\n".join([head, entries, wakes, evil]))
    RedisBroker(client, epoch.current(client).epoch).add("replicaset", ["default/open"])
    until(lambda: "object refused" in told.logs["worker"].read_text(), 20, "the refusal")
    log = told.logs["worker"].read_text()
    assert "is not that of its content" in log
    assert '"image":"e"' not in log
    assert b'"image":"e"' not in told.up.state.audit_log.read_bytes(), "it reached the API"
    client.hset(cache, "default/open", value)
    assert ready(told) == {"default/open": (2, 2), "full/refused": (2, 0)}
    until(lambda: not client.hexists(names.failures("replicaset"), "default/open"), 30, "a good turn since")


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ('spec.env[0].value: Invalid value: "a \\"b": bad', "spec.env[0].value: Invalid value: ...: bad"),
        ('x: Unsupported value: "s": supported values: "t"', 'x: Unsupported value: ...: supported values: "t"'),
        (
            'x: Invalid value: {"a":"b"}: bad; y: Duplicate value: 7',
            "x: Invalid value: ...: bad; y: Duplicate value: ...",
        ),
        ('x: Invalid value: core.PodSpec{A:(*int)(0x1), B:"c"}\n more', "x: Invalid value: ..."),
        ("exceeded quota: none", "exceeded quota: none"),
    ],
)
def test_what_servers_say_is_kept_without_the_values(said: str, left: str) -> None:
    assert discreet(said) == left
    assert len(discreet("x" * 10_000)) == 500
