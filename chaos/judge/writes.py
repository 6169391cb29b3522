"""The pass over the audit log: every write of ours was announced, named what it meant, and by whom it was sent.

Requests bear no nonce. One is matched with the latest announcement of its name (create) or uid (delete) that had been
accepted when it came; an announcement serves until it is answered, and D longer, for a request may arrive that late.
"""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from oarlock.chaos.judge.evidence.evidence import Blow, Request, Violation
from oarlock.chaos.judge.fences import Entry, Fences, Hold

CUT_NOTICED_S = 2.0
"""The recorder notices a kill at most this much later."""
_STATUSES = tuple(f"{each}/status" for each in ("replicasets", "replicationcontrollers", "daemonsets", "deployments"))
CLOCK_S = 0.002
"""Two servers read the same clock, a little before and after what they note."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A create, delete or scale of ours that took effect. ``recorded_s``: when it was announced.

    ``decided_s``: no turn that sent it read the cache before. ``marks``: what the claim of the turn that sent it had
    read: resource -> resourceVersion; None where no trace tells.
    """

    rv: int
    verb: str
    uid: str
    name: str
    owner: str
    recorded_s: float
    received_s: float
    done_s: float
    decided_s: float = 0.0
    marks: Mapping[str, int] | None = None


@dataclass
class Writes:
    """``by_rv``: resourceVersion -> our create or delete of a pod that made it; ``sizes``: our change of a size."""

    fences: Fences
    drain_s: float
    deaths: Sequence[Blow] = ()
    api_alone: bool = False
    """Nobody saw what was announced."""
    violations: list[Violation] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    by_rv: dict[int, Commit] = field(default_factory=dict)
    sizes: dict[int, Commit] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    reissued: int = 0
    late: int = 0
    replicaset_deletes: int = 0
    unproved: int = 0
    of_queue: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(queue, "create <code>") -> how many."""
    second: Counter[str] = field(default_factory=Counter)
    """What was answered to the second fleet, whose announcements nobody saw."""
    second_creates: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._creates: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        self._by_uid: dict[tuple[str, str, str], list[Entry]] = defaultdict(list)
        for entry in self.fences.entries:
            namespace = entry.task.partition(":")[2].partition("/")[0]
            if entry.field.startswith("create "):
                self._creates[entry.task, entry.field].append(entry)
            else:
                self._by_uid[namespace, entry.field, entry.uid].append(entry)
        self._holds: dict[str, list[Hold]] = defaultdict(list)
        for hold in self.fences.holds:
            self._holds[hold.task].append(hold)
        kills = [blow.at_s for blow in self.deaths if blow.kind == "redis"]
        # A record accepted after the last line that got out was never seen. Its write comes within D of the kill, and
        # nothing else does: no epoch opens earlier.
        self._cuts = [
            (
                told_s - CLOCK_S,
                self.drain_s + max((at_s for at_s in kills if 0 <= cut - at_s <= CUT_NOTICED_S), default=cut),
            )
            for told_s, cut in self.fences.cuts
        ]
        self._died = {holder: blow.at_s for blow in self.deaths for holder in blow.holders if not blow.until_s}

    def read(self, requests: Iterable[Request]) -> Writes:
        """Read a whole log."""
        for request in sorted(requests, key=lambda each: each.received_s):
            if request.ours and request.resource == "pods" and request.verb in ("create", "delete"):
                self._pod_write(request)
            elif request.ours and request.resource == "replicasets":
                self._replicaset_write(request)
            elif request.ours and request.resource in _STATUSES:
                self._status_write(request)
            elif request.ours and request.resource == "controllerrevisions" and request.verb == "delete":
                self._revision_delete(request)
            elif request.second and request.resource == "pods" and request.verb in ("create", "delete"):
                self.second[f"{request.verb} {request.code}"] += 1
                if request.verb == "create" and request.committed:
                    self.second_creates.add(request.rv)
        return self

    def _pod_write(self, request: Request) -> None:
        self.answers[f"{request.verb} {request.code}"] += 1
        if request.verb == "create":
            self.of_queue[request.task.partition(":")[0], f"create {request.code}"] += 1
        if not request.body:
            self.gaps.append(f"no body in the log for a {request.verb} of pod {request.namespace}/{request.name}")
            return
        if request.verb == "delete":
            self._check_guarded("unguarded_delete", request)
        self._announced(request, request.verb, self.by_rv)

    def _replicaset_write(self, request: Request) -> None:
        """Of a Deployment: nothing else makes, sizes or deletes a ReplicaSet. What changes no spec is not announced."""
        if request.verb == "create":
            self.of_queue[request.task.partition(":")[0], f"create {request.code}"] += 1
        elif request.verb == "delete" and request.body:
            self.replicaset_deletes += request.committed
            self._check_guarded("unguarded_delete", request)
        elif request.verb == "patch" and request.spec:
            self.answers[f"scale {request.code}"] += 1
            self._check_guarded("unguarded_scale", request)
            self._announced(request, "scale", self.sizes)

    def _check_guarded(self, kind: str, request: Request) -> None:
        named = (("uid", request.asked_uid), ("resourceVersion", request.asked_rv))
        if wanting := " and ".join(word for word, given in named if not given):
            self._break(kind, request, f"a {request.verb} without {wanting} was sent")

    def _announced(self, request: Request, verb: str, into: dict[int, Commit]) -> None:
        """Look for its announcement, and note what it did."""
        entry = self._entry(request, verb)
        if entry is None and any(from_s <= request.received_s <= to_s for from_s, to_s in self._cuts):
            self.unproved += 1
        elif entry is None and not self.api_alone:
            named = request.name or "a name left to the server"
            self._break("unannounced_write", request, f"{verb} of {named}: no record named it when it came")
        elif entry is not None:
            entry.requests += 1
            self.reissued += entry.requests > 1
            if request.committed and self._is_late(request, entry):
                self.late += 1
        if request.committed and request.rv:
            recorded_s = entry.recorded_s if entry is not None else request.received_s
            hold = self._first_hold(request, entry) if entry is not None else None
            into[request.rv] = Commit(
                request.rv,
                verb,
                request.uid,
                request.name,
                request.owner,
                recorded_s,
                request.received_s,
                request.done_s,
                hold.from_s if hold is not None else recorded_s,
                hold.marks if hold is not None else None,
            )

    def _first_hold(self, request: Request, entry: Entry) -> Hold | None:
        """That of the turn that sent this: the one that holds the key when it comes.

        Or an earlier one that announced it, if that ended less than D ago: then the bytes may still be its own.
        """
        found = [each for each in entry.holds if request.received_s - each.to_s < self.drain_s]
        holds = self._holds[entry.task]
        at = bisect.bisect_right(holds, request.received_s + CLOCK_S, key=lambda each: each.from_s)
        found += holds[at - 1 : at]
        return min(found, key=lambda each: each.from_s, default=None)

    def _entry(self, request: Request, verb: str) -> Entry | None:
        field_name = f"{verb} {request.resource}/{request.name}"
        if verb == "create":
            found = self._creates.get((request.task, field_name), [])
        else:
            found = self._by_uid.get((request.namespace, field_name, request.asked_uid), [])
        at = bisect.bisect_right(found, request.received_s + CLOCK_S, key=lambda each: each.recorded_s)
        if at == 0 or request.received_s > found[at - 1].ended_s + self.drain_s:
            return None
        return found[at - 1]

    def _is_late(self, request: Request, entry: Entry) -> bool:
        """Whether it took effect after its sender had died, and before anybody else could have sent the same."""
        holds = self._holds[entry.task]
        at = bisect.bisect_right(holds, request.received_s + CLOCK_S, key=lambda each: each.from_s)
        if at == 0:
            return False
        died_s = self._died.get(holds[at - 1].holder)
        return died_s is not None and died_s < request.done_s and holds[at - 1].from_s < died_s

    def _status_write(self, request: Request) -> None:
        self.answers[f"status {request.code}"] += 1
        if request.body and not (request.asked_uid and request.asked_rv):
            self._break("status_backwards", request, "a status bore no resourceVersion it was made from")

    def _revision_delete(self, request: Request) -> None:
        if request.body and not (request.asked_uid and request.asked_rv):
            self._break("unguarded_delete", request, f"revision {request.name} without uid and rv")

    def _break(self, kind: str, request: Request, text: str) -> None:
        task = request.task or f"{request.namespace}/{request.name}"
        self.violations.append(Violation(kind, task, request.received_s, request.rv, f"{text} (answer {request.code})"))
