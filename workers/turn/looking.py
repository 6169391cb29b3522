"""What a turn reads beyond its claim: related pods, a live list, a live owner, pods that block a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change
from oarlock.cluster.answer import Answer
from oarlock.controllers.entries import Controller
from oarlock.controllers.objects import wire
from oarlock.controllers.objects.codec import decode_pod
from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.controllers.ownership import claim as claims
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.ownership.orphans import entries_to_look_under, selected_entries
from oarlock.controllers.plan import Snapshot
from oarlock.controllers.pods.slots import base_of
from oarlock.controllers.registry import WATCHED
from oarlock.controllers.routing import owner_entry
from oarlock.workers.turn.steps import Listed, ListLive, Look, Read, Steps
from oarlock.workers.turn.turn_outcome import TurnOutcome

Versions = Mapping[str, str]
"""uid -> resourceVersion of the pods a decision was made on."""


def still_blocked(namespace: str, blocked: Mapping[str, str], outcome: TurnOutcome) -> Steps[frozenset[str]]:
    """Of the names noted as taken by foreign pods ("pods/name" -> uid), those whose pod is still there."""
    wanted = {f"{namespace}/{target.partition('/')[2]}": (target, uid) for target, uid in blocked.items()}
    found: list[Cached] = yield Look("pods", ids=tuple(wanted))
    present = {cached.uid for cached in found}
    for target, uid in wanted.values():
        if uid not in present:
            outcome.changes.append(Change.drop(f"blocked {target}"))
    return frozenset(target.partition("/")[2] for target, uid in wanted.values() if uid in present)


def list_pods(owner: Claimer) -> ListLive:
    """A list of the pods that the owner selects: its namespace may have very many others. Of all, where no server would
    take its selector.
    """
    selector = owner.selector
    return ListLive("pods", owner.namespace, None if selector is None or selector.error else selector)


def on_live_list(snapshot: Any, outcome: TurnOutcome) -> Steps[tuple[Any, Versions]]:
    """The snapshot with the pods of a consistent list, and their resourceVersions. Pods that the owner selects no more
    are not among them: they do not count, and a later turn lets them go.
    """
    owner = snapshot.owner
    listed: Listed = yield list_pods(owner)
    # The cache may be behind the list: what the list showed must not be forgotten.
    outcome.cache_must_pass("pods", listed.rv)
    pods: list[Pod] = []
    versions: dict[str, str] = {}
    for raw in listed.items:
        rv, pod = wire.pod_from_json(raw)
        ref = controller_of(pod)
        if ref is None or ref.uid == owner.uid:
            pods.append(pod)
            versions[pod.uid] = rv
    return msgspec.structs.replace(snapshot, pods=tuple(pods), satisfied=True), versions


def children(owner: Claimer) -> Steps[list[Cached]]:
    """The pods that the owner controls, and the orphans that it selects or whose name it might choose: what a claim
    hands over where it does not hand over counts.

    They may be newer than the claim. That is as if the claim had come later: what the cache had passed it has passed.
    """
    assert owner.selector is not None, "the pods of an owner without a selector are not counted"
    orphans = entries_to_look_under(owner.namespace, owner.selector, base_of(owner.name))
    found: list[Cached] = yield Look("pods", entries=(owner_entry(owner.uid), *orphans))
    return found


def is_as_claimed(claim: Claim, controller: Controller) -> Steps[bool]:
    """Whether the cached owner is still the one of the claim; its status may be another."""
    assert claim.owner is not None
    found: list[Cached] = yield Look(controller.resource, ids=(claim.key,))
    decode = WATCHED[controller.resource].decode
    claimed = decode(claim.owner.blob)
    return any(msgspec.structs.replace(decode(each.blob), status=claimed.status) == claimed for each in found)


def with_related(snapshot: Snapshot, controller: Controller) -> Steps[Snapshot]:
    """The snapshot with the owners under the same controller, the pods they own, and the orphans they select. Orphans
    that the owner itself selects are in the snapshot already.
    """
    parent = controller_of(snapshot.owner)
    assert parent is not None, "only an owner that is itself controlled has siblings"
    cached: list[Cached] = yield Look(controller.resource, entries=(owner_entry(parent.uid),))
    decode = WATCHED[controller.resource].decode
    siblings = tuple(decode(each.blob) for each in cached)
    others = dict[str, None]()
    for each in siblings:
        if each.uid != snapshot.owner.uid:
            others[owner_entry(each.uid)] = None
            if each.selector is not None and not each.selector.error:
                others |= dict.fromkeys(selected_entries(each.namespace, each.selector))
    found: list[Cached] = (yield Look("pods", entries=tuple(others))) if others else []
    related = tuple(decode_pod(each.blob) for each in found)
    return msgspec.structs.replace(snapshot, siblings=siblings, related=related)


class LiveOwner(NamedTuple):
    """The owner of a key as the API shows it now.

    ``error``: why it could not be read, or is another object now, or is being deleted; then only ``gone`` means
    anything: it exists no more, for certain, and the cache has yet to hear of it.
    """

    error: str
    gone: bool = False
    rv: str = ""
    owner: Any = None
    raw: bytes = b""


def live_owner(owner: Claimer, controller: Controller) -> Steps[LiveOwner]:
    """Read the owner past the cache, before adopting for it and before its template is written down."""
    (answer,) = yield Read(controller.resource, owner.namespace, (owner.name,))
    assert isinstance(answer, Answer)
    if not answer.ok:
        return LiveOwner(answer.message, gone=answer.code == 404 and answer.status is not None)
    try:
        rv, live = WATCHED[controller.resource].from_json(answer.body)
    except wire.WireError as unreadable:
        return LiveOwner(str(unreadable))
    error = claims.gate_error(owner, controller.flavour.kind, live.uid, live.deleting_ms)
    return LiveOwner(error, live.uid != owner.uid, rv, live, answer.body)
