"""A small fleet, as processes, over any Redis; a load on its cluster; and a judge who reads the API's own watch."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oarlock.workers.process.death_signal import command_dying_with_this_process
from oarlock.workers.process.shards import shard_of
from tests import ROOT
from tests.redis.real_servers import until

LEASE_MS, REQUEST_MS = 3_000, 1_500
DRAIN_S = (LEASE_MS + 2 * REQUEST_MS + 1_000) / 1000
OWNERS = 8
PODS, SETS = "/api/v1/pods", "/apis/apps/v1/replicasets"


class Process:
    """A command of ours, its output in a file; dies with the test."""

    def __init__(self, folder: Path, name: str, words: list[str], env: dict[str, str]) -> None:
        self.log = folder / f"{name}.log"
        self._out = self.log.open("ab")
        self.process = subprocess.Popen(
            command_dying_with_this_process([sys.executable, "-m", *words], signal.SIGTERM),
            cwd=ROOT,
            env=os.environ | env,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._out,
        )

    def end(self, signum: signal.Signals = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signum)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._out.close()


@dataclass
class Judge:
    """What the watches said, in the order of the API's resourceVersions."""

    pods: list[dict[str, Any]] = field(default_factory=list)
    owners: list[dict[str, Any]] = field(default_factory=list)

    def over_creations(self) -> list[str]:
        """Each moment at which an owner had more active pods than it ever asked for. The load never asks for fewer."""
        asked: dict[str, int] = {}
        active: dict[str, set[str]] = {}
        found = []
        events = [(_rv(each), "owner", each) for each in self.owners] + [(_rv(each), "pod", each) for each in self.pods]
        for rv, kind, event in sorted(events, key=lambda each: each[0]):
            thing = event["object"]
            if kind == "owner":
                uid = thing["metadata"]["uid"]
                asked[uid] = max(asked.get(uid, 0), thing["spec"]["replicas"])
                continue
            uid = next((ref["uid"] for ref in thing["metadata"].get("ownerReferences", ())), "")
            pods = active.setdefault(uid, set())
            ended = event["type"] == "DELETED" or thing["metadata"].get("deletionTimestamp")
            if ended or thing["status"].get("phase") in ("Failed", "Succeeded"):
                pods.discard(thing["metadata"]["name"])
            else:
                pods.add(thing["metadata"]["name"])
                if len(pods) > asked.get(uid, 0):
                    found.append(f"{rv}: {thing['metadata']['name']} is {len(pods)} of {asked.get(uid, 0)}")
        return found

    def created(self) -> int:
        return sum(1 for event in self.pods if event["type"] == "ADDED")

    def has_heard(self, pods: list[dict[str, Any]], owners: list[dict[str, Any]]) -> bool:
        """Whether the watches have come as far as the newest of these objects."""
        return all(
            max(map(_rv, heard), default=0)
            >= max((int(each["metadata"]["resourceVersion"]) for each in listed), default=0)
            for heard, listed in ((self.pods, pods), (self.owners, owners))
        )


def _rv(event: dict[str, Any]) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


class FleetStage:
    """API server, two ingestors, two workers. ``urls``: of the ingestors and the workers; ``extra``: environment.

    ``shards``: into how many the namespaces are divided; there is a namespace for each, and a worker.
    """

    def __init__(
        self, folder: Path, urls: dict[str, str], extra: dict[str, str] | None = None, shards: int = 1
    ) -> None:
        self.folder, self.urls = folder, urls
        self._namespaces = [_namespace_of(shard, shards) for shard in range(shards)]
        folder.mkdir(parents=True, exist_ok=True)
        self.seed = random.randrange(1 << 32)
        print(f"load of seed {self.seed}")
        kubeconfig, ready = folder / "kubeconfig", folder / "ready"
        self.env = {
            "OARLOCK_KUBECONFIG": str(kubeconfig),
            "OARLOCK_KUBE_API_QPS": "0",
            "OARLOCK_LEASE_MS": str(LEASE_MS),
            "OARLOCK_RENEW_EVERY_MS": "900",
            "OARLOCK_REQUEST_TIMEOUT_MS": str(REQUEST_MS),
            "OARLOCK_SHARDS": str(shards),
            **(extra or {}),
        }
        options = ["--nodes", "4", "--bookmark-s", "1", "--ready-ms", "20", "--terminate-ms", "100"]
        api = ["oarlock.sandbox.apiserver", "--kubeconfig", str(kubeconfig), "--ready-file", str(ready), *options]
        self.processes = [Process(folder, "api", api, {})]
        until(ready.exists, what="the API server")
        self.url = until(lambda: json.loads(ready.read_text() or "{}").get("url"), what="its address")
        self.judge, self._stopping = Judge(), threading.Event()
        self._loaded = threading.Event()
        for namespace in self._namespaces:
            self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.uids = [self._create(number) for number in range(OWNERS)]
        for path, into in ((PODS, self.judge.pods), (SETS, self.judge.owners)):
            threading.Thread(target=self._watch, args=(path, into), daemon=True).start()
        for number in range(2):
            self._start(f"ingestor-{number}", ["ingest", "-v"], self.urls["ingestor"])
        self._start("workers", ["worker", "-v", "--workers", str(max(2, shards))], self.urls["worker"])
        self._loading: threading.Thread | None = None
        self._load_failed: BaseException | None = None
        self.asked = [1] * OWNERS

    def _start(self, name: str, words: list[str], url: str) -> None:
        env = self.env | {"OARLOCK_REDIS_URL": url}
        self.processes.append(Process(self.folder, name, ["oarlock.cli", *words], env))

    # -- the cluster -----------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, method=method, data=data, headers={"Content-Type": kind})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def _set(self, number: int) -> str:
        """The path of a set: they lie in the namespaces in turn."""
        namespace = self._namespaces[number % len(self._namespaces)]
        return f"/apis/apps/v1/namespaces/{namespace}/replicasets/set-{number}"

    def _create(self, number: int) -> str:
        name = f"set-{number}"
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}
        return str(self.ask("POST", self._set(number).rpartition("/")[0], body)["metadata"]["uid"])

    def _watch(self, path: str, into: list[dict[str, Any]]) -> None:
        listed = self.ask("GET", path)
        into += [{"type": "ADDED", "object": item} for item in listed["items"]]
        at = listed["metadata"]["resourceVersion"]
        request = f"{self.url}{path}?watch=1&resourceVersion={at}&timeoutSeconds=3600"
        with urllib.request.urlopen(request, timeout=3600) as lines:
            for line in lines:
                if self._stopping.is_set():
                    return
                into.append(json.loads(line))

    # -- the load --------------------------------------------------------------------------------------------------

    def load(self, pause_s: float = 0.05) -> None:
        """From here on, beside the caller: sets grow, pods are deleted, nothing shrinks. ``await_rest`` ends it."""
        self._loaded.clear()
        self._loading = threading.Thread(target=self._load, args=(pause_s,), daemon=True)
        self._loading.start()

    def _load(self, pause_s: float) -> None:
        try:
            self._change(pause_s)
        except BaseException as error:
            self._load_failed = error

    def _change(self, pause_s: float) -> None:
        chance = random.Random(self.seed)
        while not self._loaded.is_set():
            if chance.random() < 0.3:
                number = chance.randrange(OWNERS)
                self.asked[number] += 1
                self.ask("PATCH", self._set(number), {"spec": {"replicas": self.asked[number]}})
            else:
                living = [each for each in self.ask("GET", PODS)["items"] if not _leaving(each)]
                if living:
                    chosen = chance.choice(living)["metadata"]
                    try:
                        self.ask("DELETE", f"/api/v1/namespaces/{chosen['namespace']}/pods/{chosen['name']}")
                    except urllib.error.HTTPError as error:
                        if error.code != 404:  # somebody was faster
                            raise
            self._loaded.wait(pause_s)

    def at_rest(self) -> bool:
        """Whether every set has what it asks for, and nothing is on its way out."""
        pods = self.ask("GET", PODS)["items"]
        if any(_leaving(each) for each in pods):
            return False
        counts = [sum(1 for each in pods if each["metadata"]["ownerReferences"][0]["uid"] == uid) for uid in self.uids]
        return counts == self.asked

    def await_made(self, pods: int, limit_s: float = 120.0) -> None:
        """Keep the load up until the judge has heard of so many pods: of fewer nothing follows."""
        assert self._loading is not None

        def made() -> bool:
            assert self._load_failed is None, self._load_failed
            return self.judge.created() >= pods

        until(made, limit_s, f"{pods} pods; {self.seed}")

    def await_rest(self, limit_s: float = 120.0) -> float:
        """End the load. Seconds until all is at rest; the judge has then heard of all of it."""
        if self._loading is not None:
            self._loaded.set()
            self._loading.join(limit_s)
            assert not self._loading.is_alive(), "the load goes on"
            self._loading = None
            if self._load_failed is not None:
                raise self._load_failed
        began_s = time.monotonic()
        until(self.at_rest, limit_s, f"rest; {self.seed}")
        rested_s = time.monotonic() - began_s
        pods, owners = self.ask("GET", PODS)["items"], self.ask("GET", SETS)["items"]
        until(lambda: self.judge.has_heard(pods, owners), what="the judge's watches")
        return rested_s

    # -- the fleet -------------------------------------------------------------------------------------------------

    def epoch(self, shard: int = 0) -> dict[str, Any]:
        """What the Lease of a shard says: epoch and phase."""
        name = f"oarlock-{shard}" if shard else "oarlock"
        try:
            lease = self.ask("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}")
        except urllib.error.HTTPError:
            return {"epoch": 0, "phase": ""}
        notes = lease["metadata"].get("annotations", {})
        return {"epoch": int(notes["oarlock.io/epoch"]), "phase": notes["oarlock.io/phase"]}

    def await_open(self, after: int, limit_s: float = 120.0, shard: int = 0) -> dict[str, float]:
        """Seconds until an epoch of the shard later than ``after`` was begun, and until it was open."""
        began_s = time.monotonic()
        until(lambda: self.epoch(shard)["epoch"] > after, limit_s, "a new epoch")
        begun_s = time.monotonic() - began_s
        until(lambda: self.epoch(shard)["phase"] == "OPEN", limit_s, "it to open")
        return {"begun_s": round(begun_s, 2), "open_s": round(time.monotonic() - began_s, 2)}

    def workers(self) -> list[int]:
        """The pids of the workers that live."""
        parent = self.processes[-1].process.pid
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]

    def logs(self) -> str:
        return "\n".join(
            f"== {each.log.name}\n" + "\n".join(each.log.read_text().splitlines()[-25:]) for each in self.processes[1:]
        )

    def close(self) -> None:
        self._stopping.set()
        for each in reversed(self.processes[1:]):
            each.end()
        self.processes[0].end(signal.SIGKILL)


def _namespace_of(shard: int, shards: int) -> str:
    """The first of some names that belongs to the shard."""
    return next(name for name in (f"place-{number}" for number in range(1000)) if shard_of(name, shards) == str(shard))


def _leaving(pod: dict[str, Any]) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp")) or pod["status"].get("phase") in ("Failed", "Succeeded")
