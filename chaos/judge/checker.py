"""The checker: evidence in, findings out. It imports nothing of the product, and reads none of its logs.

Seven passes, each linear: the trace of Redis (``fences``), the audit log against it (``writes``), the watch history in
revision order (``owners``, ``daemons`` for DaemonSets and ``rollouts`` for Deployments), changes against claims
(``keys``), and whether every owner gets on while faults last (``progress``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from oarlock.chaos.judge.daemons import DaemonSets
from oarlock.chaos.judge.evidence.evidence import Blow, End, Facts, Request, Step, Violation
from oarlock.chaos.judge.evidence.sightings import DAEMONS, DEPLOYMENTS, NODE_QUEUE, QUEUE_OF_KIND, Seen
from oarlock.chaos.judge.fences import Fences
from oarlock.chaos.judge.keys import Keys
from oarlock.chaos.judge.owners import Owners
from oarlock.chaos.judge.progress import Progress
from oarlock.chaos.judge.recovery import Recovery
from oarlock.chaos.judge.rollouts import Rollouts
from oarlock.chaos.judge.writes import Writes

MEANINGS = {
    "over_creation": "a create of ours made more active pods than were wanted since the last rest",
    "over_deletion": "a delete of ours left fewer active pods than were wanted",
    "overlap": "two holders of a key, or a step of an earlier holder or epoch was accepted",
    "lost_key": "a change that no claim had read, or an unlock that did not give the key back",
    "stuck_key": "not as it should be 30 s after the faults stopped",
    "stalled_owner": "left alone while faults lasted, and not as it asked to be but for names that were refused",
    "duplicate_name": "two pods of one name",
    "duplicate_daemon": "a create made a second pod of a DaemonSet on a node, or a third while it surges",
    "node_down": "a delete of ours left more nodes of a DaemonSet down through us than maxUnavailable",
    "over_surge": "a create of ours made more active pods of a Deployment than replicas and maxSurge allow",
    "unavailable": "a delete of ours left fewer available pods of a Deployment than maxUnavailable allows",
    "recreate_overlap": "a create of ours beside a pod of another template, though the strategy is Recreate",
    "twin_replicaset": "two ReplicaSets of a Deployment with one template",
    "unannounced_write": "a create, delete or change of a size that no record named",
    "unguarded_delete": "a delete without uid or resourceVersion",
    "unguarded_scale": "a change of a ReplicaSet's size without uid or resourceVersion",
    "status_backwards": "a status that went back, or bore no resourceVersion",
    "early_open": "turns began before the drain was over",
    "watermark_backwards": "the cache went back within an epoch",
    "crash": "a supervisor, ingestor or Redis that ended without being killed",
}
"""Kind of violation -> what it is."""
KINDS = tuple(MEANINGS)

STARTS_S = 3.0
"""How long a process takes to start on a busy machine. Only after that does it wait for a Redis that is away."""


@dataclass(frozen=True)
class Evidence:
    """All that was seen. ``from_rv``: the revision the watch began at; ``gaps``: what the recorders missed.

    ``ends``: of processes that should end only when they are killed.
    """

    trace: Sequence[Step]
    requests: Sequence[Request]
    history: Sequence[Seen]
    blows: Sequence[Blow]
    facts: Facts
    from_rv: int = 0
    gaps: Sequence[str] = ()
    ends: Sequence[End] = ()


@dataclass
class Findings:
    """``violations`` by time; ``gaps``: evidence that is missing, which voids the rest."""

    violations: list[Violation]
    gaps: list[str]
    opportunities: dict[str, int]
    answers: Counter[str]
    worker_ms: list[float] = field(default_factory=list)
    supervisor_ms: list[float] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    by_kind: dict[str, dict[str, int]] = field(default_factory=dict)
    """Queue -> what -> how many."""

    def count(self, kind: str) -> int:
        """How many violations of a kind."""
        return sum(each.kind == kind for each in self.violations)


def check(evidence: Evidence) -> Findings:
    """Judge a run."""
    facts = evidence.facts
    # A fleet that is not at rest then goes on until it is stopped, and no recorder looks any more.
    requests = [each for each in evidence.requests if each.received_s <= facts.ended_s]
    fences = Fences(facts.drain_s).read(evidence.trace)
    writes = Writes(fences, facts.drain_s, evidence.blows, facts.api_alone).read(requests)
    history = sorted(evidence.history, key=lambda seen: seen.rv)
    owners = Owners(writes.by_rv, facts, writes.second_creates).read(history)
    owners.finish().compare(requests, evidence.from_rv)
    daemons = DaemonSets(writes.by_rv, fences.views, facts).read(history).finish()
    rollouts = Rollouts(writes.by_rv, writes.sizes, facts).read(history).finish()
    keys = Keys(fences.views, fences.open_spans)
    if not facts.api_alone:
        keys.read(history, facts, evidence.from_rv)
    progress = Progress(facts, fences.open_spans, writes.by_rv)
    progress.read(history, requests, evidence.blows)
    recovery = Recovery(fences).read(evidence.blows)
    standing = [
        Violation("stuck_key", hold.task, hold.from_s, 0, f"still locked by {hold.holder} when the run ended")
        for hold in fences.standing()
        if facts.ended_s - hold.from_s > facts.settle_limit_s
    ]
    killed = {blow.pid for blow in evidence.blows if not blow.until_s}
    crashes = [
        Violation("crash", "", end.at_s, 0, f"{end.role} (pid {end.pid}) ended by itself; see its log")
        for end in evidence.ends
        if end.pid not in killed and not _found_no_redis(end, evidence.blows)
    ]
    parts = (
        fences.violations,
        writes.violations,
        owners.violations,
        daemons.violations,
        rollouts.violations,
        keys.violations,
        progress.violations,
        standing,
        crashes,
    )
    return Findings(
        violations=sorted((each for part in parts for each in part), key=lambda each: each.at_s),
        gaps=[*evidence.gaps, *fences.gaps, *writes.gaps, *owners.gaps],
        opportunities={
            "creates": owners.creates + daemons.creates,
            "deletes": owners.deletes + daemons.deletes,
            "claims": len(fences.holds),
            "kills_holding_keys": recovery.kills_holding,
            "kills_with_write_in_flight": recovery.kills_with_write_in_flight,
            "already_exists": writes.answers["create 409"],
            "late_commits": writes.late,
            "stale_nonce_refusals": len(fences.refused),
            "leases_ended": sum(hold.by == "reclaim" for hold in fences.holds),
            "reissued_writes": writes.reissued,
            "unproved_writes": writes.unproved,
            "live_lists": fences.live_lists,
            "epochs": len(fences.epochs),
            "rests": owners.rests + daemons.rests + rollouts.rests,
            "parked": recovery.parked,
            "changes_followed": len(keys.waits_s),
            "progress_checks": progress.checks,
            "progress_checks_refused": progress.checks_refused,
            "rollouts": daemons.rollouts,
            "rolling_deletes": daemons.rolling_deletes,
            "most_nodes_down": daemons.most_down,
            "pods_beside_another": daemons.pairs,
            "daemon_already_exists": writes.of_queue[DAEMONS, "create 409"],
            "node_moves": daemons.moves,
            "deployment_rollouts": rollouts.changes,
            "templates_come_back": rollouts.come_back,
            "size_writes": len(writes.sizes),
            "creates_while_rolling": rollouts.creates_rolling,
            "deletes_of_available": rollouts.deletes_available,
            "recreations": rollouts.recreations,
            "second_fleet_creates": writes.second["create 201"],
            "second_fleet_already_exists": writes.second["create 409"],
        },
        by_kind=_by_kind(fences, writes, owners, daemons, rollouts, keys),
        answers=writes.answers,
        worker_ms=recovery.worker_ms,
        supervisor_ms=recovery.supervisor_ms,
        waits_s=keys.waits_s,
    )


def _found_no_redis(end: End, blows: Sequence[Blow]) -> bool:
    """Whether it was only just starting when Redis was killed: then it says so, ends, and is started again."""
    return any(
        blow.kind == "redis" and 0 <= end.at_s - blow.at_s <= STARTS_S and end.began_s >= blow.at_s - STARTS_S
        for blow in blows
    )


def _by_kind(
    fences: Fences, writes: Writes, owners: Owners, daemons: DaemonSets, rollouts: Rollouts, keys: Keys
) -> dict[str, dict[str, int]]:
    claims = Counter(hold.task.partition(":")[0] for hold in fences.holds)
    found = {
        queue: {
            "creates": owners.of_queue[queue, "creates"],
            "deletes": owners.of_queue[queue, "deletes"],
            "already_exists": writes.of_queue[queue, "create 409"],
            "claims": claims[queue],
            "rests": owners.of_queue[queue, "rests"],
            "changes_followed": keys.of_queue[queue],
        }
        for queue in (*QUEUE_OF_KIND.values(), NODE_QUEUE)
    }
    found[DAEMONS] |= {"creates": daemons.creates, "deletes": daemons.deletes, "rests": daemons.rests}
    found[DEPLOYMENTS] |= {
        "creates": writes.of_queue[DEPLOYMENTS, "create 201"],
        "deletes": writes.replicaset_deletes,
        "rests": rollouts.rests,
    }
    return found
