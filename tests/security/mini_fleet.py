"""A whole fleet on one thread and one clock moved by hand, over a real Redis: an ingestor, a supervisor's lease
manager, a genuine RQ worker with the real engine, and a scripted cluster that does what it is told. What would end a
process in the field is noted, and the process started anew.
"""

from __future__ import annotations

import socket
from concurrent.futures import Future
from typing import Any

import orjson
from redis.exceptions import ResponseError
from rq.exceptions import StopRequested
from rq.worker import WorkerStatus

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.epoch import Seen
from oarlock.broker.protocol import Broker
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver
from oarlock.cluster.answer import Answer
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.counters.turn_counts import TurnCounts
from oarlock.workers.counters.turn_slots import TurnSlots
from oarlock.workers.epoch.identity import Identity
from oarlock.workers.process.exit_code import ExitCode
from oarlock.workers.process.settings import Settings
from oarlock.workers.rq.worker import KeyWorker
from oarlock.workers.signing.refusals import Refusals
from oarlock.workers.signing.signature import Key, Signer
from oarlock.workers.signing.signing_broker import SigningBroker
from oarlock.workers.supervisor.lease_manager import REFUSALS, LeaseManager
from oarlock.workers.tracing.tracer import NoTracer
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.steps import Listed, Write
from tests.controllers.pod_names import slot_index
from tests.workers.ingest.ingest_api import PODS, REPLICASETS, ScriptedApi, replicaset_json
from tests.workers.ingest.ingest_rig import TEST_CLOCK, Process, Rig, Server, Side
from tests.workers.turn.quiet_api import QuietApi
from tests.workers.turn.turns import arrived

QUEUE, KEY, UID = "replicaset", "default/web", "uid-web"
SETTINGS = Settings(lease_ms=1_500, renew_every_ms=400, request_timeout_ms=200)
"""After a lost epoch, writes that may still land are waited for for 2.9 s."""
STEP_MS = 100
RATE_PER_S = 1_000
"""More than there is to do; so that the key of the rate is read and written too."""
LABELS = {"app": "web"}
KEYRING = (Key("0a0a", bytes(range(32))),)


class ClusterApi(QuietApi):
    """A worker's way to the scripted cluster. ``wrong``: writes that no worker in its right mind would send."""

    def __init__(self, api: ScriptedApi) -> None:
        self._api, self._made = api, 0
        self.wrong: list[str] = []
        self.most_pods = 0
        """At any moment so far."""

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        return arrived([self._one(write) for write in writes])

    def _one(self, write: Write) -> Answer:
        key = f"{write.namespace}/{write.name}"
        there = self._api.objects[write.resource].get(key)
        match write.verb:
            case "create":
                if there is not None:
                    return self._status(409, "AlreadyExists")
                return self._create(write, key)
            case "delete":
                meta = there["metadata"] if there is not None else {}
                if there is None:
                    return self._status(404, "NotFound")
                if (meta["uid"], meta["resourceVersion"]) != (write.uid, write.rv):
                    return self._status(409, "Conflict")
                if [ref["uid"] for ref in meta.get("ownerReferences", ())] != [UID]:
                    self.wrong.append(f"delete of {key}, which is nobody's of ours")
                return Answer(200, orjson.dumps({"metadata": {"resourceVersion": str(self._api.delete(PODS, key))}}))
            case "status":
                if there is None:
                    return self._status(404, "NotFound")
                body = orjson.loads(write.body)
                if body["metadata"]["resourceVersion"] != there["metadata"]["resourceVersion"]:
                    return self._status(409, "Conflict")
                self._api.put(REPLICASETS, {**there, "status": body["status"]})
                return Answer(200, orjson.dumps(self._api.objects[REPLICASETS][key]))
        self.wrong.append(f"{write.verb} of {write.resource} {key}")
        return self._status(403, "Forbidden")

    def _create(self, write: Write, key: str) -> Answer:
        body = orjson.loads(write.body)
        owner = self._api.objects[REPLICASETS][KEY]
        if body["spec"] != owner["spec"]["template"]["spec"] or write.resource != PODS:
            self.wrong.append(f"create of {key} from another template: {body['spec']}")
        if slot_index("web", UID, write.name) is None:
            self.wrong.append(f"create of {key}, which is no name of the owner's")
        self._made += 1
        body["metadata"] |= {"uid": f"pod-{self._made}", "namespace": write.namespace}
        self._api.put(PODS, {**body, "status": {"phase": "Running"}})
        self.most_pods = max(self.most_pods, len(self._api.objects[PODS]))
        return Answer(201, orjson.dumps(self._api.objects[PODS][key]))

    @staticmethod
    def _status(code: int, reason: str) -> Answer:
        return Answer(code, orjson.dumps({"kind": "Status", "status": "Failure", "reason": reason, "message": reason}))

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        found = [self._api.objects[resource].get(f"{namespace}/{name}") for name in names]
        missing = self._status(404, "NotFound")
        return arrived([missing if each is None else Answer(200, orjson.dumps(each)) for each in found])

    def list_live(self, resource: str, namespace: str, selector: LabelSelector | None = None) -> Future[Listed]:
        return arrived(Listed(str(self._api.rv), list(self._api.raw_at(resource, self._api.rv).values())))


class NoTimer:
    """The fleet below looks often enough."""

    def start(self) -> socket.socket:
        return None  # type: ignore[return-value]

    def take(self) -> bool:
        return False

    def close(self) -> None:
        pass


class SigningSide(Side):
    """As an ingestor with a signing key has it."""

    def broker(self, seen: Seen) -> Broker:  # type: ignore[override]
        return signed(super().broker(seen))


def signed(broker: RedisBroker) -> Broker:
    return SigningBroker(broker, Signer(KEYRING, f"oarlock {broker.keys.base}"), Refusals(lambda: 0))


class Fleet:
    """``crashes``: what ended a process that should have lived. ``leaves``: workers that went in good order."""

    def __init__(self, redis_server: EmbeddedRedis, *, signs: bool = False, replicas: int = 3) -> None:
        self.redis, self._signs = redis_server, signs
        self.rig = Rig(Server(redis_server.url("admin")), settings=SETTINGS)
        self.admin, self._client = self.rig.server.admin, connect(redis_server.url("admin"))
        self.clock, self.api = self.rig.clock, self.rig.api
        self.cluster = ClusterApi(self.api)
        self.crashes: list[str] = []
        self.leaves: list[str] = []
        self.bugs: list[str] = []
        self.worker: KeyWorker | None = None
        self.leases: LeaseManager | None = None
        self.broker: RedisBroker | None = None
        self._seen: Seen | None = None
        self._holders = 0
        self.want(replicas)
        self._ingestor("a")
        self.run(3_000)
        assert self.healthy(), self.story()

    # -- the cluster -------------------------------------------------------------------------------------------------

    def want(self, replicas: int) -> None:
        self.api.put(REPLICASETS, replicaset_json("default", "web", UID, labels=LABELS, replicas=replicas))
        self.replicas = replicas

    @property
    def most_pods(self) -> int:
        return self.cluster.most_pods

    @property
    def pods(self) -> list[str]:
        return sorted(self.api.objects[PODS])

    def healthy(self) -> bool:
        """The epoch is open, the pods are those asked for, and the key is at rest."""
        if len(self.pods) != self.replicas or self.broker is None or self.worker is None:
            return False
        try:
            seen = epoch.current(self.admin)
            busy = self.admin.hexists(self.broker.keys.state(QUEUE), KEY)
        except (ResponseError, BrokerUnreachable):
            return False
        return seen.epoch == self.broker.epoch and seen.intact and seen.phase == "OPEN" and not busy

    def forget_history(self) -> None:
        """Of the cluster: what is kept of it is read again at each step."""
        self.run(500)
        for resource, objects in self.api.objects.items():
            read = min(int(process.reflectors[resource].position or 0) for process in self.rig.processes)
            unread = [event for event in self.api.events[resource] if event[0] > read]
            first = min((event[0] for event in unread), default=self.api.rv + 1)
            there = sorted(
                (int(obj["metadata"]["resourceVersion"]), "ADDED", key, orjson.dumps(obj))
                for key, obj in objects.items()
            )
            self.api.events[resource] = [event for event in there if event[0] < first] + unread

    # -- time --------------------------------------------------------------------------------------------------------

    def run(self, ms: int, *, until_healthy: bool = False) -> bool:
        """Let so much time pass. Returns whether all is well in the end; ends then, if asked."""
        for _ in range(0, ms, STEP_MS):
            self.step()
            if until_healthy and self.healthy():
                return True
        return self.healthy()

    def step(self) -> None:
        self.rig.advance(STEP_MS)
        for at, process in enumerate(self.rig.processes):
            process.catch_up()
            try:
                for _ in range(60):
                    if process.round() > 0:
                        break
            except Exception as error:
                self.crashes.append(f"ingestor: {type(error).__name__}: {error}"[:300])
                self._ingestor(process.name, at)
        self._supervise()
        if self.worker is not None:
            self._work(self.worker)

    def _ingestor(self, name: str, at: int | None = None) -> None:
        process = Process(self.rig, name)
        if self._signs:
            process.side = SigningSide(self.rig.server, process.client)
            process.coordinator._redis = process.side
        if at is None:
            self.rig.processes.append(process)
        else:
            self.rig.processes[at] = process

    def _supervise(self) -> None:
        try:
            if self.leases is None:
                self._seek()
            if self.leases is not None:
                self._keep_worker(self.leases)
        except EpochOver:
            self.worker = self.leases = self.broker = None
        except Exception as error:
            self.crashes.append(f"supervisor: {type(error).__name__}: {error}"[:300])

    def _seek(self) -> None:
        try:
            seen = epoch.current(self.admin)
        except REFUSALS:
            return
        if not seen.intact:
            return
        broker = RedisBroker(self._client, seen.epoch, clock=TEST_CLOCK)
        try:
            broker.look("")
        except EpochOver:
            return
        self._seen, self.broker = seen, broker
        self.leases = LeaseManager(broker, NoTimer(), SETTINGS, self.clock)

    def _keep_worker(self, leases: LeaseManager) -> None:
        holder = self.worker._holder if self.worker is not None else ""
        lost = leases.run_due([holder] if holder else [])
        if leases.expired(self.clock.mono_ms()) or lost:
            self.worker = None
            leases.release(holder)
        if self.worker is None and leases.answered and not leases.expired(self.clock.mono_ms()):
            self._holders += 1
            holder = f"w{self._holders}"
            try:
                leases.register(holder, "s", [QUEUE])
            except REFUSALS:
                return
            self.worker = self._new_worker(holder)

    def _new_worker(self, holder: str) -> KeyWorker:
        assert self._seen is not None
        assert self.broker is not None
        client = connect(self.redis.url("worker"))
        identity = Identity(holder, "s", self._seen, TurnSlots(1)[0])
        worker = KeyWorker([QUEUE], holder, connection=client, settings=SETTINGS, clock=self.clock, identity=identity)
        worker._holder, worker._slot = holder, identity.slot
        worker._broker, worker._counts = self.broker, TurnCounts(identity.counts)
        broker: Broker = signed(self.broker) if self._signs else self.broker
        worker._engine = Engine(broker, self.cluster, SETTINGS, self.clock, [QUEUE])  # type: ignore[assignment]
        order = worker._engine._order
        order._specs = [each._replace(rate_per_s=RATE_PER_S) for each in order._specs]
        worker._tracer = NoTracer()
        worker._runner = worker._new_runner()
        return worker

    def _work(self, worker: KeyWorker) -> None:
        try:
            if worker.birth_date is None:
                worker.register_birth()
            worker._look_around(WorkerStatus.IDLE)
            for _ in range(4):
                reply = worker._claim()
                if not isinstance(reply, Batch):
                    break
                worker.execute_job([reply], worker._queue_of[reply.queue])
        except StopRequested:
            self.leaves.append(ExitCode(worker.exit_code).name)
            self._bury(worker)
        except Exception as error:
            self.crashes.append(f"worker: {type(error).__name__}: {error}"[:300])
            self._bury(worker)

    def _bury(self, worker: KeyWorker) -> None:
        self.worker = None
        if self.leases is not None:
            try:
                self.leases.release(worker._holder)
            except EpochOver:
                self.leases = self.broker = None

    # -- for messages ------------------------------------------------------------------------------------------------

    def story(self) -> dict[str, Any]:
        number = self.rig.server.epoch() if not self.crashes else "?"
        return {
            "epoch": number,
            "pods": len(self.pods),
            "wanted": self.replicas,
            "crashes": self.crashes[-5:],
            "leaves": self.leaves[-5:],
            "wrong": self.cluster.wrong,
        }
