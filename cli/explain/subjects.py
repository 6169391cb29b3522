"""Collects from the cache what the explanation of a key needs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.looks.views import KeyView
from oarlock.cli.explain.custom_sentences import Referenced, custom_subject
from oarlock.cli.explain.daemon_sentences import Daemons, NodeSubject
from oarlock.cli.explain.rollout_sentences import RolloutSubject, plan_of
from oarlock.cli.explain.sentences import OtherOwner, Owner, Subject
from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.deployment.plan import SizeWrite, Snapshot
from oarlock.controllers.deployment.sizing.sizes import is_observed
from oarlock.controllers.entries import CustomController, ReferenceFanOut
from oarlock.controllers.objects.model import FINISHED_PHASES, Owned, ReplicaSet, controller_of
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.registry import CONTROLLERS, WATCHED, entry_of
from oarlock.controllers.scheduling.eligibility import eligibility_of
from oarlock.controllers.scheduling.model import Node
from oarlock.controllers.whole_routes import named


def subject_of(inspector: Inspector, about: KeyView, rv: str, obj: Any) -> Subject:
    """The object of a key with all that its explanation needs; ``rv``: its revision. Reads whole resources."""
    if isinstance(obj, Whole):
        return _of_whole(inspector, about, rv, obj)
    if isinstance(obj, DaemonSet):
        read = about.expectations.parsed if about.expectations is not None else None
        return Daemons(
            obj,
            rv,
            _all(inspector, "nodes"),
            _owned(_all(inspector, "pods", obj.namespace), obj.uid),
            _owned(_all(inspector, "controllerrevisions", obj.namespace), obj.uid),
            time.time_ns() // 1_000_000,
            read.back_offs if read is not None else {},
        )
    if isinstance(obj, Node):
        return _of_node(inspector, rv, obj)
    if isinstance(obj, Deployment):
        return _of_deployment(inspector, about, rv, obj)
    pods = _owned(_all(inspector, "pods", obj.namespace), obj.uid)
    if not isinstance(obj, ReplicaSet):
        return OtherOwner(obj, rv, CONTROLLERS[about.queue], tuple(pods), time.time_ns() // 1_000_000)
    leaving = sum(1 for pod in pods if pod.deleting_ms)
    finished = sum(1 for pod in pods if not pod.deleting_ms and pod.phase in FINISHED_PHASES)
    return Owner(obj, rv, len(pods) - leaving - finished, leaving)


def _of_whole(inspector: Inspector, about: KeyView, rv: str, obj: Whole) -> Subject:
    entry = entry_of(about.queue)
    if isinstance(entry, CustomController):
        return custom_subject(inspector, entry, rv, obj, deadly=about.suspect or about.crashes > 0)
    assert isinstance(entry, ReferenceFanOut)
    owners = _all(inspector, entry.owners)
    concerned = [each.key for each in owners if obj.key in named(each, entry.target, entry.resource)]
    return Referenced(obj, rv, WATCHED[entry.owners].kind, concerned)


def _of_deployment(inspector: Inspector, about: KeyView, rv: str, deployment: Deployment) -> RolloutSubject:
    replicasets = _all(inspector, "replicasets", deployment.namespace)
    ours = tuple([each for each in replicasets if _controller_uid(each) in (deployment.uid, "")])
    read = about.expectations.parsed if about.expectations is not None else None
    scales = read.scales if read is not None and read.owner_uid == deployment.uid else ()
    size_writes = {each.uid: SizeWrite(each.low, each.high, open=each.open is not None) for each in scales}
    for each in ours:
        if is_observed(each) and (write := size_writes.get(each.uid)) is not None and not write.open:
            del size_writes[each.uid]
    uids = {each.uid for each in ours}
    pods = [pod for pod in _all(inspector, "pods", deployment.namespace) if _controller_uid(pod) in uids]
    now_ms = time.time_ns() // 1_000_000
    plan = plan_of(Snapshot(deployment, ours, size_writes), pods, now_ms)
    return RolloutSubject(deployment, rv, plan, now_ms, size_writes)


def _of_node(inspector: Inspector, rv: str, node: Node) -> NodeSubject:
    daemonsets: list[DaemonSet] = _all(inspector, "daemonsets")
    pods = [pod for pod in _all(inspector, "pods") if pod.target_node == node.name]
    uids = {ref.uid for pod in pods if (ref := controller_of(pod)) is not None}
    have = [each.key for each in daemonsets if each.uid in uids]
    answers = {each.key: eligibility_of(each.placement).eligible(node) for each in daemonsets}
    belong = [key for key, (should_run, _) in answers.items() if should_run]
    return NodeSubject(node, rv, have, belong, [key for key, (_, may_stay) in answers.items() if may_stay])


def _all(inspector: Inspector, resource: str, namespace: str = "") -> list[Any]:
    """The cached objects of a resource, or of one namespace, by key."""
    found = dict(inspector.objects(resource))
    decode = WATCHED[resource].decode
    prefix = f"{namespace}/" if namespace else ""
    return [decode(found[key].blob) for key in sorted(found) if key.startswith(prefix)]


def _owned(objects: Iterable[Any], uid: str) -> list[Any]:
    return [obj for obj in objects if _controller_uid(obj) == uid]


def _controller_uid(obj: Owned) -> str:
    ref = controller_of(obj)
    return ref.uid if ref is not None else ""
