"""ResourceQuota on numbers of objects: creates above the limit are refused, `status.used` follows.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go (wording) and
pkg/quota/v1/evaluator/core/pods.go (what counts). Counted are `pods` (those not Succeeded or Failed),
`count/<plural>[.<group>]` and the old plain names (`services`, `configmaps`, ...). Requests and limits of
compute resources are stored and not enforced.

Counts change with each event, so a check costs the same however many pods there are.

Wiring: `Quotas(store)`, `admission.on_create(quotas.check_create)`, `start()` inside the running loop,
`await stop()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import forbidden, qualified
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.loops.background import StoreFollower, Worklist
from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.text.quantities import parse_quantity

Obj = dict[str, Any]

_PLAIN_NAMES: Final = frozenset({"services", "configmaps", "secrets", "resourcequotas", "replicationcontrollers"})
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(slots=True)
class _Quota:
    """One ResourceQuota: limits on what we can count, and how much of each there is."""

    name: str
    scopes: tuple[str, ...]
    hard: Mapping[str, Decimal]
    counted_rv: int  # events up to this resourceVersion are in the first count
    used: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.used = dict.fromkeys(self.hard, 0)

    def take(self, kind: Kind, obj: Obj, by: int) -> bool:
        """Count `obj` in (1) or out (-1). Returns whether that changed a count."""
        resources = [r for r in resources_of(kind, obj, self.scopes) if r in self.hard]
        for resource in resources:
            self.used[resource] += by
        return bool(resources)


def resources_of(kind: Kind, obj: Obj, scopes: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The resources of which a quota with these scopes counts one for `obj`."""
    if kind.name != "Pod":
        # Scopes select pods; such a quota counts nothing else.
        counted = f"count/{qualified(kind.plural, kind.group)}"
        if scopes:
            return ()
        return (counted, kind.plural) if kind.plural in _PLAIN_NAMES and not kind.group else (counted,)
    if not all(_in_scope(obj, scope) for scope in scopes):
        return ()
    ended = (obj.get("status") or {}).get("phase") in _ENDED
    return ("count/pods",) if ended else ("count/pods", "pods")


def _in_scope(pod: Obj, scope: str) -> bool:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if scope in ("Terminating", "NotTerminating"):
        return (spec.get("activeDeadlineSeconds") is not None) is (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return (status.get("qosClass") == "BestEffort") is (scope == "BestEffort")
    return scope == "PriorityClass" and bool(spec.get("priorityClassName"))


class Quotas(StoreFollower):
    """All quotas of a store."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._quotas: dict[str, dict[str, _Quota]] = {}
        self._unwritten: Worklist[tuple[str, str]] = Worklist("quotas", self._write_status)
        self._work = (self._unwritten,)

    def _begin(self) -> None:
        """Count what is there."""
        for quota in self._store.list("ResourceQuota"):
            self._count(quota)

    def write_status(self) -> None:
        """Write every status that is behind, now."""
        self._unwritten.work()

    def check_create(self, store: Store, kind: Kind, obj: Obj) -> None:
        """Raises ApiError 403 if one more object like `obj` is more than a quota of its namespace allows."""
        meta = obj["metadata"]
        quotas = self._quotas.get(meta.get("namespace", "")) if kind.namespaced else None
        if not quotas:
            return
        for _, quota in sorted(quotas.items()):
            wanted = resources_of(kind, obj, quota.scopes)
            over = sorted(r for r in wanted if r in quota.hard and quota.used[r] + 1 > quota.hard[r])
            if over:
                requested, used, limited = (
                    ",".join(f"{r}={amount}" for r, amount in amounts)
                    for amounts in (
                        [(r, 1) for r in over],
                        [(r, quota.used[r]) for r in over],
                        [(r, f"{quota.hard[r]:f}") for r in over],
                    )
                )
                name = meta.get("name") or meta.get("generateName") or ""
                why = f"exceeded quota: {quota.name}, requested: {requested}, used: {used}, limited: {limited}"
                raise forbidden(kind.plural, kind.group, name, why)

    def _seen(self, event: Event) -> None:
        kind = event.kind
        if kind.name == "ResourceQuota":
            if event.type == "DELETED":
                self._quotas.get(event.namespace, {}).pop(event.name, None)
            elif event.old is None or event.obj.get("spec") is not event.old.get("spec"):
                self._count(event.obj)
        if not kind.namespaced:
            return
        for quota in self._quotas.get(event.namespace, {}).values():
            if event.rv <= quota.counted_rv:
                continue
            changed = False
            if event.old is not None and event.type != "ADDED":
                changed = quota.take(kind, event.old, -1)
            if event.type != "DELETED":
                changed = quota.take(kind, event.obj, 1) or changed
            if changed:
                self._unwritten.add((event.namespace, quota.name))

    def _count(self, obj: Obj) -> None:
        """Begin to keep count for a new or changed quota, from what is there."""
        spec, meta = obj.get("spec") or {}, obj["metadata"]
        countable = {
            resource: parse_quantity(amount)
            for resource, amount in (spec.get("hard") or {}).items()
            if resource == "pods" or resource in _PLAIN_NAMES or resource.startswith("count/")
        }
        quota = _Quota(meta["name"], tuple(spec.get("scopes") or ()), countable, self._store.rv)
        namespace = meta["namespace"]
        for kind, _, name in self._store.keys_in(namespace):
            found = self._store.get(kind, namespace, name)
            if found is not None:
                quota.take(self._store.kinds[kind], found, 1)
        self._quotas.setdefault(namespace, {})[quota.name] = quota
        self._unwritten.add((namespace, quota.name))

    def _write_status(self, key: tuple[str, str]) -> None:
        namespace, name = key
        stored = self._store.get("ResourceQuota", namespace, name)
        quota = self._quotas.get(namespace, {}).get(name)
        if stored is None or quota is None:
            return
        used = {resource: str(count) for resource, count in sorted(quota.used.items())}
        hard = (stored.get("spec") or {}).get("hard") or {}
        status = {**(stored.get("status") or {}), "hard": hard, "used": used}
        self._store.update("ResourceQuota", {**stored, "status": status})
