"""The history of a Deployment's templates: the number of each, going back to one, and how many are kept.

Upstream: `pkg/controller/deployment/rollback.go`, `sync.go` (cleanupDeployment), `util/deployment_util.go`
(MaxRevision, LastRevision).
"""

from collections.abc import Iterable, Sequence

from oarlock.controllers.deployment import annotations, events
from oarlock.controllers.deployment.annotations import REVISION, ROLLBACK_TO
from oarlock.controllers.deployment.find import by_age
from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.deployment.plan import Rollback, Rollout
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.controllers.objects.wire_parts import parse_int64


def revision_of(replicaset: ReplicaSet) -> int | None:
    """Its revision, 0 where it has none; None where the annotation is no number."""
    return parse_int64(replicaset.annotations.get(REVISION) or "0")


def next_revision(old: Iterable[ReplicaSet]) -> int:
    """The revision of a ReplicaSet that is newer than `old`."""
    return max([revision_of(each) or 0 for each in old], default=0) + 1


def rollback_requested(deployment: Deployment) -> int | None:
    """The revision that the annotation for rollbacks asks for, 0 for the last one; None without a request."""
    return parse_int64(deployment.annotations.get(ROLLBACK_TO, ""))


def rollback(deployment: Deployment, rollout: Rollout, revision: int) -> Rollback:
    """How the request ends. `revision`: the one asked for."""
    replicasets = rollout.old if rollout.new is None else (*rollout.old, rollout.new)
    if not revision:
        revision = _last_revision(replicasets)
        if not revision:
            return Rollback(None, events.NO_LAST_REVISION)
    target = next((each for each in replicasets if revision_of(each) == revision), None)
    if target is None:
        return Rollback(None, events.REVISION_NOT_FOUND)
    if target.template_digest == deployment.template_digest:
        return Rollback(None, events.template_unchanged(deployment.name))
    afterwards = annotations.own(deployment.annotations) | annotations.shared(target.annotations)
    del afterwards[ROLLBACK_TO]
    return Rollback(target, events.rolled_back(deployment.name, revision), afterwards)


def _last_revision(replicasets: Iterable[ReplicaSet]) -> int:
    """The one before the latest; 0 if there is none."""
    return sorted([0, 0, *[revision_of(each) or 0 for each in replicasets]])[-2]


def surplus(deployment: Deployment, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """The old ReplicaSets to delete so that as many stay as the history may hold: the lowest revisions first.

    One that has pods, or may get some, stays, and no other goes in its place. One that is being deleted counts as gone.
    Unlike upstream, pods that are ending count: under Recreate nobody would know whose they are, and wait for them.
    """
    limit = deployment.revision_history_limit
    staying = [each for each in old if not each.deleting_ms]
    if limit is None or len(staying) <= limit:
        return ()
    staying.sort(key=lambda each: (revision_of(each) or 0, *by_age(each)))
    return tuple([each for each in staying[: len(staying) - limit] if _is_empty(each)])


def _is_empty(replicaset: ReplicaSet) -> bool:
    status = replicaset.status
    pods = replicaset.replicas or status.replicas or status.terminating
    return not pods and status.observed_generation >= replicaset.generation
