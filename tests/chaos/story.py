"""Hand-made evidence: a cluster of one owner, told step by step, as the recorders would have seen it.

A story told by its plain steps is one in which nothing is wrong; a test tells one wrong step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oarlock.chaos.judge.checker import Evidence, Findings, check
from oarlock.chaos.judge.evidence.evidence import (
    Answered,
    Blow,
    Claimed,
    EpochBegun,
    Facts,
    Opened,
    Recorded,
    Request,
    Step,
    Unlocked,
    Watermark,
)
from oarlock.chaos.judge.evidence.sightings import OwnerSeen, PodSeen, Seen

TASK = "replicaset:shop/web"
UID = "owner-uid"
DRAIN_S = 7.0


@dataclass
class Story:
    """Time passes by ``wait``; every change of the cluster takes the next revision."""

    replicas: int = 2
    strict: bool = False
    at_s: float = 1_000.0
    rv: int = 100
    trace: list[Step] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    history: list[Seen] = field(default_factory=list)
    blows: list[Blow] = field(default_factory=list)
    pods: dict[str, PodSeen] = field(default_factory=dict)
    epoch: int = 1
    nonces: int = 0
    nonce: str = ""
    holder: str = ""
    task: str = TASK
    uid: str = UID
    facts: dict[str, float] = field(default_factory=dict)
    resources = ("pods", "replicasets", "replicationcontrollers")

    def __post_init__(self) -> None:
        self.trace += [EpochBegun(self.at_s, 1), Opened(self.at_s, 1)]
        self._begin()

    def _begin(self) -> None:
        place = (self._next(), self.at_s, False, self.task, self.uid)
        self.seen = OwnerSeen(*place, 1, self.replicas, strict=self.strict)
        self.history.append(self.seen)

    def wait(self, by_s: float) -> Story:
        self.at_s += by_s
        return self

    def _next(self) -> int:
        self.rv += 1
        self.at_s += 0.001
        return self.rv

    # -- the cluster

    def owner(self, **changes: Any) -> Story:
        """The owner after a change."""
        self.seen = self.seen._replace(rv=self._next(), at_s=self.at_s, **changes)
        self.history.append(self.seen)
        return self

    def scale(self, replicas: int) -> Story:
        return self.owner(replicas=replicas, generation=self.seen.generation + 1)

    def status(self) -> Story:
        """A status of ours that tells the truth of now."""
        active = [pod for pod in self.pods.values() if pod.active]
        ready = sum(pod.ready for pod in active)
        return self.owner(observed=self.seen.generation, status_replicas=len(active), status_ready=ready)

    def appears(self, name: str, uid: str = "", **more: Any) -> PodSeen:
        """A pod is there, by whomever."""
        rv = self._next()
        pod = PodSeen(rv, self.at_s, False, "shop", name, uid or f"uid-{name}-{rv}", self.uid, self.task, **more)
        self.pods[name] = pod
        self.history.append(pod)
        return pod

    def stray(self, name: str) -> Story:
        """A pod that others made, and that the owner gets by adoption."""
        self.rv += 1
        self.asks("create", name, 201, committed=True, rv=self.rv + 1, uid=f"uid-{name}", ours=False, owner="", task="")
        pod = self.appears(name, uid=f"uid-{name}")
        self.history[-1] = self.pods[name] = pod._replace(owner="", task="")
        return self.becomes(name, owner=self.uid, task=self.task)

    def becomes(self, name: str, **changes: Any) -> Story:
        pod = self.pods[name] = self.pods[name]._replace(rv=self._next(), at_s=self.at_s, **changes)
        self.history.append(pod)
        return self

    def runs(self, *names: str) -> Story:
        for name in names or tuple(self.pods):
            self.becomes(name, phase="Running", ready=True, node="node-1")
        return self

    def goes(self, name: str) -> Story:
        self.becomes(name, gone=True)
        del self.pods[name]
        return self

    # -- requests

    def asks(self, verb: str, name: str, code: int, *, committed: bool, **more: Any) -> Story:
        """A line of the audit log, of a worker unless said otherwise."""
        fields: dict[str, Any] = {"ours": True, **more}
        if verb == "create":
            fields = {"owner": self.uid, "task": self.task, **fields}
        asked = fields.pop("received_s", self.at_s)
        self.requests.append(
            Request(asked, max(asked, self.at_s), verb, "pods", "shop", name, code, committed, **fields)
        )
        return self

    def creates(self, name: str, received_s: float | None = None) -> Story:
        """A create of ours that takes effect."""
        pod = self.appears(name)
        more = {} if received_s is None else {"received_s": received_s}
        return self.asks("create", name, 201, committed=True, rv=pod.rv, uid=pod.uid, **more)

    def exists_already(self, name: str) -> Story:
        return self.asks("create", name, 409, committed=False)

    def deletes(self, name: str, *, received_s: float | None = None, graceful: bool = True, **more: Any) -> Story:
        """A delete of ours that takes effect."""
        pod = self.pods[name]
        if graceful:
            self.becomes(name, deleting=True)
        else:
            self.goes(name)
        fields: dict[str, Any] = {"asked_uid": pod.uid, "asked_rv": str(pod.rv), **more}
        if received_s is not None:
            fields["received_s"] = received_s
        return self.asks("delete", name, 200, committed=True, rv=self.rv, uid=pod.uid, **fields)

    # -- redis

    def step(self, step: Step) -> Story:
        self.trace.append(step)
        return self

    def read(self) -> Story:
        """The cache has come up to now."""
        self.at_s += 0.001
        self.trace += [Watermark(self.at_s, self.epoch, name, self.rv) for name in self.resources]
        return self

    def claim(self, holder: str = "w-1") -> Story:
        self.read()
        self.nonces += 1
        self.holder, self.nonce = holder, f"n{self.nonces}"
        return self.step(Claimed(self.at_s, self.epoch, self.task, holder, self.nonce))

    def record(self, *entries: tuple[str, str], nonce: str = "") -> Story:
        """("create", name) or ("delete", name)."""
        self.at_s += 0.001
        fields = tuple(
            (f"{verb} pods/{name}", self.pods[name].uid if verb == "delete" else "") for verb, name in entries
        )
        return self.step(Recorded(self.at_s, self.epoch, self.task, nonce or self.nonce, fields))

    def finish(self, *answered: tuple[str, str], state: str = "idle", nonce: str = "") -> Story:
        self.at_s += 0.001
        for verb, name in answered:
            self.step(Answered(self.at_s, self.epoch, self.task, f"{verb} pods/{name}"))
        return self.step(Unlocked(self.at_s, self.epoch, self.task, "finish", nonce=nonce or self.nonce, state=state))

    def release(self, holder: str = "", state: str = "queued") -> Story:
        self.at_s += 0.001
        who = holder or self.holder
        return self.step(Unlocked(self.at_s, self.epoch, self.task, "release", holder=who, state=state))

    def dies(self, *holders: str) -> Story:
        """SIGKILL to a worker."""
        self.at_s += 0.001
        self.blows.append(Blow(self.at_s, "worker", 1, holders or (self.holder,)))
        return self

    # -- whole turns

    def fill(self, *names: str) -> Story:
        """A turn that creates these, and one that writes the status when they run."""
        self.claim().record(*(("create", name) for name in names))
        for name in names:
            self.creates(name)
        self.finish(*(("create", name) for name in names)).runs(*names)
        return self.turn()

    def turn(self) -> Story:
        """A turn that only writes the status, and one that sees it written."""
        return self.claim().status().finish().claim().finish()

    def shrink(self, *names: str) -> Story:
        """A turn that deletes these, and the end of them."""
        self.claim().record(*(("delete", name) for name in names))
        for name in names:
            self.deletes(name)
        self.finish(*(("delete", name) for name in names))
        for name in names:
            self.goes(name)
        return self.turn()

    def takes_one(self, name: str) -> Story:
        """A turn that deletes this one at once."""
        self.claim().record(("delete", name)).deletes(name, graceful=False)
        return self.finish(("delete", name))

    # -- the end

    def evidence(self, **more: Any) -> Evidence:
        self.wait(5.0)
        facts = Facts(DRAIN_S, more.pop("faults_ended_s", self.at_s - 4.0), self.at_s, **self.facts)
        return Evidence(self.trace, self.requests, self.history, self.blows, facts, 100, **more)

    def check(self, **more: Any) -> Findings:
        return check(self.evidence(**more))


def kinds(findings: Findings) -> list[str]:
    """The kinds of violations found, and "gap" where evidence was missing."""
    return sorted({each.kind for each in findings.violations}) + (["gap"] if findings.gaps else [])
