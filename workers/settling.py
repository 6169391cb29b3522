"""Settling what an earlier holder announced and left unanswered: by writing the same again, never by looking.

An absence proves nothing, for the request may still be under way; the same name or UID written again forces the
outcome.

A record says what was announced; whose it is, it does not. Whoever may write to Redis may write records, so a pod is
deleted only if it is the owner's, by the cache or else by the API, and created only under a name of the owner's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any

from broker.values import Change, Record
from cluster.answer import Answer
from controllers import slots
from controllers.claim import Claimer
from controllers.daemonset.names import Names
from controllers.model import Pod, controller_of
from controllers.pod_template import TemplateError
from controllers.registry import Controller
from workers import acting
from workers.acting import created, deleted
from workers.ledger import Ledger
from workers.steps import Grant, Read, Reserve, Send, Step, Write

NAMES_MAX = 64
"""Of one node: each but the first two was passed over because somebody else bears the one before."""


def settle(
    owner: Claimer, record: Record, pods: Iterable[Pod], controller: Controller, revision: str, ledger: Ledger
) -> Generator[Step, Any, None]:
    """Send every pending entry of the record again, as many as the rate limit allows now.

    They are in the record already, under the nonce this claim put on the key; no new announcement is due.
    ``pods``: those of the claim. ``revision``: hash label of the owner's current revision, where its kind keeps any.
    """
    deletes = [
        Write("delete", "pods", owner.namespace, each.target.partition("/")[2], uid=each.uid, rv=each.rv)
        for each in record.deletes
        if not each.answered and _of_a_pod(each.target)
    ]
    for field in _nobodys(record):  # kept, they would keep the key at it for ever
        ledger.changes.append(Change.drop(field))
        ledger.failed(f"the record of {owner.name} has an entry that none of ours announces: left out")
    own = {pod.uid for pod in pods if _is_of(owner, pod)}
    strange = [write for write in deletes if write.uid not in own or not write.rv]
    if strange:
        checked = yield from _checked(owner, strange, ledger)
        deletes = [write for write in deletes if write not in strange or write in checked]
    creates: list[Write] = []
    announced = [target for target in record.pending_creates if _of_a_pod(target)]
    if announced:
        nodes = acting.hinted_nodes(record)
        try:
            bodies = controller.pod_bodies(owner, revision, nodes)
        except TemplateError as error:
            raise ledger.failure(str(error)) from None
        for target in announced:
            write = Write("create", "pods", owner.namespace, target.partition("/")[2])
            if not _named_by(owner, write.name, nodes.get(write.name), controller):
                ledger.settle(write)
                ledger.failed(
                    f"the record of {owner.name} is to create {write.name}, which is no name of its own: left out"
                )
                continue
            try:
                creates.append(write._replace(body=bodies.body(write.name)))
            except TemplateError:
                # It does not say for which node it was. The claim holds its name, so the decision comes to it again.
                ledger.settle(write)
    ledger.resending = True
    wanted = len(deletes) + len(creates)
    if not wanted:
        return
    grant: Grant = yield Reserve(wanted)
    deletes = deletes[: grant.granted]
    creates = creates[: grant.granted - len(deletes)]
    if grant.granted < wanted:
        ledger.retry, ledger.least_wait_ms = True, grant.wait_ms
    if not deletes and not creates:
        return
    answers: list[Answer] = yield Send((*deletes, *creates), prepaid=True)
    yield from deleted(deletes, answers[: len(deletes)], ledger)
    yield from created(owner, creates, answers[len(deletes) :], ledger)


def _of_a_pod(target: str) -> bool:
    return target.startswith("pods/")


def _nobodys(record: Record) -> list[str]:
    """Pending fields that no turn has announced: of another verb, or of something that is no pod."""
    others = [field for verb, target in record.pending_others for field in (verb, f"{verb} {target}")]
    creates = [f"create {target}" for target in record.pending_creates if not _of_a_pod(target)]
    return (
        others + creates + [each.field for each in record.deletes if not each.answered and not _of_a_pod(each.target)]
    )


def _is_of(owner: Claimer, pod: Pod) -> bool:
    ref = controller_of(pod)
    return ref is not None and ref.uid == owner.uid and pod.namespace == owner.namespace


def _checked(owner: Claimer, writes: Sequence[Write], ledger: Ledger) -> Generator[Step, Any, list[Write]]:
    """Of deletes of pods that the cache does not show as the owner's, those that it has all the same by the API.

    Unlike a name, a UID that is gone never comes back: here an absence does prove something. And a pod that went to
    another was changed since, so that a delete that may be under way is refused for certain by its resourceVersion.
    """
    looks: list[Answer] = yield Read("pods", owner.namespace, tuple(write.name for write in writes))
    found = []
    for write, look in zip(writes, looks, strict=True):
        if look.code == 404 and look.status is not None:
            ledger.answered_delete(write)
            continue
        pod = acting.pod_of(look)
        if pod is None:
            ledger.retry = True  # nothing learned: it stays announced
        elif pod.uid != write.uid:
            ledger.answered_delete(write)
        elif _is_of(owner, pod) and write.rv:
            found.append(write)
        else:
            ledger.settle(write)
            ledger.failed(f"the record of {owner.name} is to delete {write.name}, which is not its own: left alone")
    return found


def _named_by(owner: Claimer, name: str, node: str | None, controller: Controller) -> bool:
    """Whether the owner has a slot of that name; where its pods are of nodes, for that node."""
    if not controller.mirrors:
        return slots.index_of(owner.name, owner.uid, name) is not None
    names = Names(owner.name, owner.uid)
    return not node or any(name == names.name(node, k) for k in range(NAMES_MAX))
