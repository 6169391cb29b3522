"""The input of a decision about a Deployment, and its output.

Sizes of ReplicaSets are written by us, acted on by their own controller, and known from a cache. So the pods of a
ReplicaSet may be as many as the largest of its recent sizes, and as few as the smallest, until its status has observed
the last one. Limits are kept by counting every ReplicaSet both ways (see sizing/sizes.py).
"""

from collections.abc import Mapping

import msgspec

from oarlock.controllers.deployment.model import Deployment, DeploymentStatus
from oarlock.controllers.objects.model import Pod, ReplicaSet
from oarlock.controllers.pods.events import Event


class SizeWrite(msgspec.Struct, frozen=True):
    """What is remembered of the size writes of one ReplicaSet until its status has observed the last one.

    `low`, `high`: the smallest and largest size that it had, has or may get by them. `open`: a write has no answer yet,
    and the cached ReplicaSet is the one it was made for, so it may have landed and may still land.
    """

    low: int
    high: int
    open: bool = False


class Snapshot(msgspec.Struct, frozen=True):
    """All that a decision reads, as of one moment.

    `replicasets`: those controlled by the Deployment and the orphans of its namespace that it may adopt; the cache
    shows all our answered writes of them. `size_writes`: by UID. `adopted`: None before claims are made; afterwards the
    UIDs of the orphans that were adopted, and every other orphan stays one. `pods`: those of all its ReplicaSets, in
    any phase; None until a plan asks for them.
    """

    deployment: Deployment
    replicasets: tuple[ReplicaSet, ...]
    size_writes: Mapping[str, SizeWrite] = {}
    adopted: frozenset[str] | None = None
    pods: tuple[Pod, ...] | None = None


class Creation(msgspec.Struct, frozen=True):
    """A ReplicaSet to create. It is created with size 0, so that a create that lands late starts no pods; then it is
    scaled to `replicas`, under the UID and resourceVersion it got.

    `hash`: value of the hash label. `annotations`: all of them.
    """

    name: str
    hash: str
    replicas: int
    annotations: Mapping[str, str]


class Update(msgspec.Struct, frozen=True):
    """A ReplicaSet to change, under its UID and the resourceVersion of the cache.

    `replicas`: its size afterwards, also where that stays. `low`, `high`: what is to be remembered of its sizes.
    `annotations`: to add or overwrite. `min_ready_seconds`: None: stays. `event`: told once it is done, or None.
    """

    replicaset: ReplicaSet
    replicas: int
    low: int
    high: int
    annotations: Mapping[str, str] = {}
    min_ready_seconds: int | None = None
    event: Event | None = None


class Rollback(msgspec.Struct, frozen=True):
    """The request in the annotation for rollbacks is to be ended. `target`: the ReplicaSet whose template, without the
    hash label, becomes the Deployment's; None if there is none or it is the same. `annotations`: the Deployment's
    afterwards, beside those that are not known here; None: only the request goes. `event`: told once it is done.
    """

    target: ReplicaSet | None
    event: Event
    annotations: Mapping[str, str] | None = None


class Rollout(msgspec.Struct, frozen=True):
    """The ReplicaSets as the status needs them. `new`: the one with the Deployment's template, or None. `old`: all
    others of the Deployment, in order of creation. `evaluated`: whether the condition Progressing is judged: not while
    the Deployment is paused, is scaled or is being deleted.
    """

    new: ReplicaSet | None = None
    old: tuple[ReplicaSet, ...] = ()
    evaluated: bool = False


class Plan(msgspec.Struct, frozen=True):
    """What to do, in stages: adopt and release; then `rollback`, or `create`, or `updates`; then `prune`; then the
    status. An empty plan: only the status.

    An adoption or release that is refused ends the turn. Adoptions end the deciding too, so the turn decides again with
    `adopted` set. `wants_pods`: nothing can be created yet; decide again with `pods`. `updates` may land in any order,
    or only some of them: no subset breaks a limit. `prune`: old ReplicaSets to delete, under UID and resourceVersion.
    `rollout`: what the status is made from. `revision`: the Deployment's revision annotation afterwards; empty: stays.
    `error`: why a part was not done: the turn is tried again, and the status is written all the same. `invalid`: why
    nothing at all is done but to say that the generation was observed. `waiting_for`: why nothing more is done now, for
    people, such as "ReplicaSet web-5d is to observe its size"; empty if nothing is waited for.
    """

    rollout: Rollout = Rollout()
    adopt: tuple[ReplicaSet, ...] = ()
    release: tuple[ReplicaSet, ...] = ()
    wants_pods: bool = False
    rollback: Rollback | None = None
    create: Creation | None = None
    updates: tuple[Update, ...] = ()
    prune: tuple[ReplicaSet, ...] = ()
    revision: str = ""
    events: tuple[Event, ...] = ()
    error: str = ""
    invalid: str = ""
    waiting_for: str = ""


class StatusWrite(msgspec.Struct, frozen=True):
    """A status to write. `revision`: the revision annotation that goes with it; empty: stays."""

    status: DeploymentStatus
    revision: str = ""


class StatusPlan(msgspec.Struct, frozen=True):
    """`write`: None if the Deployment says all of it already. `again_ms`: look again after so long, because time alone
    will change the status: None if it will not.
    """

    write: StatusWrite | None
    again_ms: int | None = None
