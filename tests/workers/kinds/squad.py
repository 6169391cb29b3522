"""A kind of the tests' own, all of it: a Squad keeps `size` pods, in pairs, so an odd size is rounded up.

Decision, route and entry, and what they read and write: nothing else in the product knows of it.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from operator import attrgetter

import msgspec

from oarlock.controllers.entries import PodController, owner_kind
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.model import LabelSelector, Namespaced, OwnerRef, active_pods
from oarlock.controllers.objects.status import status_merge_patch
from oarlock.controllers.objects.wire_parts import Meta, Selector, decoded, ms_of, owner_refs, selector_of
from oarlock.controllers.ownership.claim import claim
from oarlock.controllers.plan import Plan, Snapshot
from oarlock.controllers.pods.pod_template import pod_bodies
from oarlock.controllers.pods.slots import slots_of
from oarlock.controllers.replicaset.decide import snapshot

FLAVOUR = Flavour("toys.example.com/v1", "Squad", "squad-controller", colocates=False, has_terminating=False)


class SquadStatus(msgspec.Struct, frozen=True, array_like=True):
    """How many pods there are."""

    pods: int = 0


class Squad(Namespaced, frozen=True):
    """What is kept of a Squad."""

    size: int
    selector: LabelSelector | None
    template: bytes
    status: SquadStatus = SquadStatus()
    deleting_ms: int = 0
    owner_refs: tuple[OwnerRef, ...] = ()
    created_ms: int = 0


class _Spec(msgspec.Struct):
    size: int
    selector: Selector
    template: msgspec.Raw


class _Status(msgspec.Struct, frozen=True):
    pods: int = 0


class _Wire(msgspec.Struct):
    metadata: Meta
    spec: _Spec
    status: _Status = _Status()


def squad_from_json(raw: bytes) -> tuple[str, Squad]:
    """A Squad: its resourceVersion and its projection."""
    wire = decoded(msgspec.json.Decoder(_Wire), raw, "Squad")
    meta, spec = wire.metadata, wire.spec
    return meta.resource_version, Squad(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        size=spec.size,
        selector=selector_of(spec.selector),
        template=bytes(spec.template),
        status=SquadStatus(wire.status.pods),
        deleting_ms=ms_of(meta.deletion_timestamp),
        owner_refs=owner_refs(meta),
        created_ms=ms_of(meta.creation_timestamp),
    )


def decide(snapshot: Snapshot, now_ms: int) -> Plan:
    """Pairs of pods: those that are missing come, the youngest that are too many go."""
    owner, unanswered = snapshot.owner, snapshot.unanswered
    claimed = claim(owner, active_pods(snapshot.pods)).claimed
    diff = len(claimed) - (owner.size + owner.size % 2)  # type: ignore[attr-defined]
    plan = Plan(diff=diff, claimed=tuple(claimed))
    if not snapshot.satisfied or unanswered.creates or unanswered.deletes or owner.deleting_ms:
        return plan
    if diff < 0:
        taken = {pod.name for pod in snapshot.pods} | snapshot.blocked
        names = islice(slots_of(owner.name, owner.uid).free(taken), -diff)
        return msgspec.structs.replace(plan, create=tuple(names))
    youngest = sorted(claimed, key=lambda pod: -pod.created_ms)[:diff]
    return msgspec.structs.replace(plan, delete=tuple((pod.name, pod.uid) for pod in youngest))


def status(
    owner: Squad, plan: Plan, error: str, now_ms: int, report_terminating: bool, attempted: bool = True
) -> SquadStatus | None:
    """The status to write, or None where it says so already."""
    new = SquadStatus(len(plan.claimed))
    return None if new == owner.status else new


def status_patch(owner: Squad, new: SquadStatus, resource_version: str) -> bytes:
    return status_merge_patch(owner.uid, resource_version, {"pods": new.pods})


SQUAD = PodController(
    name="squad-controller",
    owners=owner_kind(
        FLAVOUR,
        plural="squads",
        short_name="sq",
        queue="squad",
        from_json=squad_from_json,
        decode=codec.decoder(Squad, "Squad"),
        columns={"SIZE": attrgetter("size"), "PODS": attrgetter("status.pods")},
    ),
    concurrent_syncs="concurrent_squad_syncs",
    flavour=FLAVOUR,
    snapshot=snapshot,
    decide=decide,
    status=status,
    status_patch=status_patch,
    pod_bodies=partial(pod_bodies, flavour=FLAVOUR),
)
