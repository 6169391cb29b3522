"""What a new kind costs: the one module beside this file. A fleet that registers it looks after it from end to end.

The API server, the ingestor and the supervisor are processes that are forked after the kind was registered, as every
process of a fleet has to be.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from oarlock.cli import cli
from oarlock.controllers.registry import WATCHED, register, unregister
from oarlock.sandbox.apiserver.kinds.kinds import KINDS, Kind
from oarlock.sandbox.apiserver.kubeconfig import write_kubeconfig
from oarlock.sandbox.apiserver.server import EmbeddedCluster
from oarlock.sandbox.apiserver.server import Settings as ServerSettings
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.process.kinds import enabled_queues
from oarlock.workers.process.rights import grants
from oarlock.workers.process.settings import Settings, setting_names
from oarlock.workers.supervisor.ingest_command import run_ingestor
from oarlock.workers.supervisor.worker_command import run_fleet
from tests.workers.kinds.squad import SQUAD

LIMIT_S = 40.0
SQUADS = "/apis/toys.example.com/v1/namespaces/default/squads"
FORKED = multiprocessing.get_context("fork")
RED: dict[str, Any] = {
    "apiVersion": "toys.example.com/v1",
    "kind": "Squad",
    "metadata": {"name": "red", "namespace": "default"},
    "spec": {
        "size": 3,
        "selector": {"matchLabels": {"squad": "red"}},
        "template": {
            "metadata": {"labels": {"squad": "red"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    },
}


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """Squads are known: to the fleet, and to the API server of the sandbox."""
    register(SQUAD)
    served = Kind("Squad", group="toys.example.com", subresources=frozenset({"status"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "Squad", served)  # type: ignore[arg-type]  # a dict, typed as one that is only read
        yield
    unregister(SQUAD)


def serve(told: Connection) -> None:
    """Be the API server; tell its URL."""

    async def run() -> None:
        told.send(await EmbeddedCluster(ServerSettings()).start())
        await asyncio.Event().wait()

    asyncio.run(run())


def forked(target: Callable[..., Any], *arguments: Any) -> Any:
    process = FORKED.Process(target=target, args=arguments)
    process.start()
    return process


class Fleet:
    """A fleet that knows Squads, on an API server and a Redis of its own."""

    def __init__(self, folder: Path, redis: EmbeddedRedis) -> None:
        here, there = FORKED.Pipe()
        self._processes = [forked(serve, there)]
        self.url, self.redis_url = here.recv(), redis.url("admin")
        write_kubeconfig(folder / "kubeconfig", self.url)
        settings = Settings(
            redis_url=self.redis_url,
            kubeconfig=str(folder / "kubeconfig"),
            lease_ms=3_000,
            renew_every_ms=500,
            request_timeout_ms=2_000,
            send_margin_ms=100,
            kube_api_qps=0.0,
        )
        self._processes += [forked(run_ingestor, settings), forked(run_fleet, settings, 1)]

    def call(self, path: str, body: Any = None, verb: str = "GET") -> Any:
        headers = {"Content-Type": "application/merge-patch+json" if verb == "PATCH" else "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.url + path, data, headers, method=verb)) as answer:
            return json.loads(answer.read())

    def pods(self) -> list[dict[str, Any]]:
        found = self.call("/api/v1/namespaces/default/pods")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def oarlock(self, *words: str) -> str:
        told = CliRunner().invoke(cli, [*words, "--redis", self.redis_url])
        assert told.exit_code == 0, told.output
        return told.output

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            process.join(10)
            with suppress(ProcessLookupError):
                process.kill()
            process.join()


@pytest.fixture(scope="module")
def fleet(known: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as redis:
        made = Fleet(tmp_path_factory.mktemp("fleet"), redis)
        yield made
        made.stop()


def until(check: Callable[[], Any], what: str) -> None:
    """Try it again and again; what is not there yet may raise."""
    end_s = time.monotonic() + LIMIT_S
    while True:
        with suppress(AssertionError, OSError):
            if check():
                return
        assert time.monotonic() < end_s, what
        time.sleep(0.05)


def test_the_fleet_looks_after_it(fleet: Fleet) -> None:
    """From its event to its pods and its status, and on to the people who ask about it."""
    fleet.call(SQUADS, RED, "POST")
    until(lambda: fleet.call(f"{SQUADS}/red").get("status") == {"pods": 4}, "four pods and a status that says so")
    refs = {(ref["kind"], ref["name"]) for pod in fleet.pods() for ref in pod["metadata"]["ownerReferences"]}
    assert (len(fleet.pods()), refs) == (4, {("Squad", "red")})

    shown = ["default", "red", "3", "4"]
    until(lambda: fleet.oarlock("get", "sq").splitlines()[1].split()[:4] == shown, "its status is in the cache")
    heading, row = fleet.oarlock("get", "squad").splitlines()
    assert heading.split() == ["NAMESPACE", "NAME", "SIZE", "PODS", "AGE", "RV"]
    assert row.split()[:4] == shown
    assert json.loads(fleet.oarlock("get", "squads", "red", "-o", "json"))["size"] == 3
    until(lambda: "nothing to do" in fleet.oarlock("explain", "sq/default/red"), "it is at rest")
    told = fleet.oarlock("explain", "red", "-c", "squad")
    assert "Squad default/red has 4 pods in the cache" in told
    assert "SIZE: 3; PODS: 4" in told

    fleet.call(f"{SQUADS}/red", {"spec": {"size": 1}}, "PATCH")
    until(lambda: fleet.call(f"{SQUADS}/red")["status"] == {"pods": 2} and len(fleet.pods()) == 2, "two pods")


def test_what_a_process_reads_from_the_entry(known: None) -> None:
    """Flags, settings and rights."""
    assert enabled_queues("squad") == ("squad",)
    assert Settings.from_env({"OARLOCK_CONCURRENT_SQUAD_SYNCS": "2"}).concurrent_syncs == {"squad": 2}
    assert "concurrent_squad_syncs" in setting_names()
    assert ("watch", "toys.example.com", "squads") in grants()["ingestor.yaml"]
    assert ("patch", "toys.example.com", "squads/status") in grants()["worker-squad.yaml"]


def test_a_name_is_taken_once(known: None) -> None:
    with pytest.raises(ValueError, match="registered already"):
        register(SQUAD)
    with pytest.raises(ValueError, match="registered already"):
        register(WATCHED["pods"])
