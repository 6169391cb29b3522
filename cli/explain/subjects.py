"""Collects from the cache what the explanation of a key needs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from oarlock.broker.inspect import Inspector, KeyView
from oarlock.cli.explain.daemon_sentences import Daemons, NodeSubject
from oarlock.cli.explain.sentences import OtherOwner, Owner, Subject
from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.objects.model import FINISHED_PHASES, Owned, ReplicaSet, controller_of
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.controllers.scheduling.eligibility import eligibility_of
from oarlock.controllers.scheduling.model import Node


def subject_of(inspector: Inspector, about: KeyView, rv: str, obj: Any) -> Subject:
    """The object of a key with all that its explanation needs; ``rv``: its revision. Reads whole resources."""
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
    pods = _owned(_all(inspector, "pods", obj.namespace), obj.uid)
    if not isinstance(obj, ReplicaSet):
        return OtherOwner(obj, rv, CONTROLLERS[about.queue], tuple(pods), time.time_ns() // 1_000_000)
    leaving = sum(1 for pod in pods if pod.deleting_ms)
    finished = sum(1 for pod in pods if not pod.deleting_ms and pod.phase in FINISHED_PHASES)
    return Owner(obj, rv, len(pods) - leaving - finished, leaving)


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
