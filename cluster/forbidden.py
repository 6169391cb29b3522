"""Finds in a 403 which permission we lack. A 403 may mean something else, such as a quota.

Upstream: forbiddenMessage of apiserver/pkg/endpoints/handlers/responsewriters/errors.go, which every authorizer's
refusal goes through, and plugin/pkg/admission/gc/gc_admission.go for what owner references need.
"""

import logging
import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from oarlock.cluster.answer import Answer

_REFUSED = re.compile(
    r'User "(?P<user>.*?)" cannot (?P<verb>[a-z]+) '
    r'(?:resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?|path "(?P<path>[^"]*)")'
)
_BLOCKS = "cannot set blockOwnerDeletion"
_OWNED = "cannot set an ownerRef on a resource you can't delete"


class Permission(NamedTuple):
    """What an administrator has to grant. ``resource``: `pods`, `pods/status`, or a path such as `/version`.

    ``user``: to whom, "" if the server does not say; ``namespace``: of the request, "" for all namespaces.
    """

    verb: str
    group: str
    resource: str
    namespace: str = ""
    user: str = ""


OnForbidden = Callable[[Permission], None]
log = logging.getLogger("oarlock.cluster.rights")


def log_missing(permission: Permission) -> None:
    """The default of a client: log it."""
    log.error("no permission to %s %s in API group %r", permission.verb, permission.resource, permission.group)


def missing_permission(answer: Answer, path: str, body: bytes = b"") -> Permission | None:
    """The permission that a 403 says is missing; None if it has another reason (quota, policy, a namespace that ends).

    path: of the request, with or without a query; body: what was sent, as JSON.
    """
    status = answer.status if answer.code == 403 else None
    if status is None:
        return None
    told = _REFUSED.search(status.message)
    if told is not None:
        resource = told["resource"] or told["path"] or ""
        return Permission(told["verb"], told["group"] or "", resource, told["namespace"] or "", told["user"])
    group, resource, namespace = _place(path)
    if _OWNED in status.message:
        return Permission("delete", group, resource, namespace)
    if _BLOCKS in status.message:
        group, plural = _blocking_owner(body)
        return Permission("update", group, f"{plural}/finalizers", namespace)
    return None


def _place(path: str) -> tuple[str, str, str]:
    """(group, resource, namespace) of a request's path."""
    parts = path.partition("?")[0].strip("/").split("/")
    group, rest = (parts[1], parts[3:]) if parts[0] == "apis" else ("", parts[2:])
    namespace, rest = (rest[1], rest[2:]) if rest[:1] == ["namespaces"] and len(rest) > 2 else ("", rest)
    return group, rest[0] if rest else "", namespace


class _OwnerReference(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    block_owner_deletion: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    owner_references: list[_OwnerReference] | None = None


class _Owned(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_owned = msgspec.json.Decoder(_Owned)


def _blocking_owner(body: bytes) -> tuple[str, str]:
    """(group, plural) of the owner whose deletion shall wait for this object; "owners" if the body does not tell."""
    try:
        references = _owned.decode(body).metadata.owner_references or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        references = []
    for each in references:
        if each.block_owner_deletion:
            return each.api_version.rpartition("/")[0], f"{each.kind.lower()}s"
    return "", "owners"
