"""From a request's path to the resource that it names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from oarlock.sandbox.apiserver.kinds.kinds import Kind


@dataclass(frozen=True, slots=True)
class Target:
    """An object (`name` set), a collection, or a part of an object (`subresource` set).

    `namespace` is "" for cluster-scoped kinds and for a collection across all namespaces.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Paths:
    """Resolves `/api/v1/...` and `/apis/GROUP/VERSION/...` for the kinds given."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._by_plural = {
            (version.group, version.version, version.plural): version for kind in kinds for version in kind.versions
        }
        namespace_kind = self._by_plural.get(("", "v1", "namespaces"))
        self._namespace_parts = namespace_kind.subresources if namespace_kind else frozenset()

    def resolve(self, path: str) -> Target | None:
        """The target of `path`, or None if nothing served here has it. Whether the kind has the
        subresource is for the caller to say."""
        parts = path.split("/")
        if "%" in path:
            parts = [unquote(part) for part in parts]
        if parts[1] == "api":
            group, rest = "", parts[2:]
        elif parts[1] == "apis" and len(parts) > 3:
            group, rest = parts[2], parts[3:]
        else:
            return None
        if rest and rest[-1] == "":
            rest.pop()  # a trailing slash
        if len(rest) < 2 or "" in rest:
            return None
        version, *rest = rest
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in self._namespace_parts:
            namespace, rest = rest[1], rest[2:]
        kind = self._by_plural.get((group, version, rest[0]))
        if kind is None or len(rest) > 3:
            return None
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        if bool(namespace) != kind.namespaced and (namespace or name):
            return None
        return Target(kind, namespace, name, subresource)
