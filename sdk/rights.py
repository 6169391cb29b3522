"""What the API server has to allow a user's controllers, and no more: `oarlock rbac FILE` prints it.

| who | may | because |
|---|---|---|
| ingestor | list, watch: own kind, children, watched kinds | it fills the cache |
| ingestor | leases: create; get, update the fleet's own | it numbers epochs |
| ingestor | events: create, patch | it tells what people did to the fleet |
| worker | own kind: get; patch of its status | it looks past the cache, and reports |
| worker | own kind: patch | finalizers and `ctx.patch`; of the steps style only |
| worker | own kind: update of finalizers | nothing writes it; admission asks for it where children block the deletion |
| worker | children: get, create, patch, delete | an apply is a patch, and a create where the object is new |
| worker | watched kinds: get; what `watch(writes=)` names | looks past the cache |
| worker | events: create, patch | what it tells, and how often |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from oarlock.sdk.definitions import Definition
from oarlock.sdk.kinds import Kind

Json = dict[str, Any]
Rights = dict[tuple[str, str], set[str]]
"""(API group, resource with its subresource) -> verbs."""

RBAC: Final = "rbac.authorization.k8s.io"
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")


def ingestor_rights(definitions: Iterable[Definition]) -> Rights:
    """Of the process that follows the cluster, without the Lease, which is in one namespace."""
    rights: Rights = {("", "events"): {"create", "patch"}}
    for each in definitions:
        for kind in (each.kind, *each.children, *(watch.kind for watch in each.watches)):
            _add(rights, kind, "list", "watch")
    return rights


def worker_rights(definitions: Iterable[Definition]) -> Rights:
    """Of the processes that run the controllers."""
    rights: Rights = {("", "events"): {"create", "patch"}}
    for each in definitions:
        _add(rights, each.kind, "get")
        if each.model is None or "status" in each.model.__struct_fields__:
            _add(rights, each.kind, "patch", part="/status")
        if each.style == "steps":
            _add(rights, each.kind, "patch")
        if each.children:
            _add(rights, each.kind, "update", part="/finalizers")
        for kind in each.children:
            _add(rights, kind, "get", "create", "patch", "delete")
        for watch in each.watches:
            _add(rights, watch.kind, "get", *watch.writes)
    return rights


def _add(rights: Rights, kind: Kind, *verbs: str, part: str = "") -> None:
    rights.setdefault((kind.group, f"{kind.plural}{part}"), set()).update(verbs)


def rules_of(rights: Rights) -> list[Json]:
    """The rules of a role: resources of one group with the same verbs together, by the alphabet."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), verbs in sorted(rights.items()):
        found.setdefault((group, tuple(verb for verb in _VERBS if verb in verbs)), []).append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
        for (group, verbs), resources in found.items()
    ]


def manifests(
    definitions: Sequence[Definition], fleet: str, namespace: str, lease_namespace: str = "kube-system"
) -> list[Json]:
    """Two service accounts in `namespace`, `<fleet>-ingestor` and `<fleet>-worker`, with their roles and bindings."""
    lease = f"oarlock-{fleet}"
    lease_rules = [
        # A create cannot be restricted to a name: there is none yet when rights are looked at.
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [lease],
            "verbs": ["get", "update"],
        },
    ]
    ingestor, worker = f"{fleet}-ingestor", f"{fleet}-worker"
    return [
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(name, namespace)}
            for name in (ingestor, worker)
        ),
        _role("ClusterRole", ingestor, "", rules_of(ingestor_rights(definitions))),
        _binding("ClusterRole", ingestor, "", ingestor, namespace),
        _role("Role", f"{fleet}-lease", lease_namespace, lease_rules),
        _binding("Role", f"{fleet}-lease", lease_namespace, ingestor, namespace),
        _role("ClusterRole", worker, "", rules_of(worker_rights(definitions))),
        _binding("ClusterRole", worker, "", worker, namespace),
    ]


def _meta(name: str, namespace: str) -> Json:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def _role(kind: str, name: str, namespace: str, rules: list[Json]) -> Json:
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": _meta(name, namespace), "rules": rules}


def _binding(kind: str, name: str, namespace: str, account: str, of: str) -> Json:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": _meta(name, namespace),
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": of}],
    }
