"""The documents that clients ask for first: groups, versions, resources, and the schema.

Of built-in kinds there is no schema, on purpose: an empty document makes every kubectl skip client-side
validation; a missing one makes it refuse to apply. Custom kinds have theirs (`custom/openapi.py`).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.custom.openapi import openapi_documents
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.text.versions import version_rank

GIT_VERSION: Final = "v1.32.0+oarlock"
JSON: Final = "application/json"

_VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
# What a subresource accepts and speaks: verbs, and kind if it is not the parent's.
_SUBRESOURCES: Final[Mapping[str, tuple[list[str], dict[str, str]]]] = {
    "status": (["get", "patch", "update"], {}),
    "scale": (
        ["get", "patch", "update"],
        {"group": "autoscaling", "version": "v1", "kind": "Scale"},
    ),
    "binding": (["create"], {"kind": "Binding"}),
    "eviction": (["create"], {"group": "policy", "version": "v1", "kind": "Eviction"}),
    "finalize": (["update"], {}),
}


def _resources(kinds: list[Kind]) -> list[dict[str, Any]]:
    resources = []
    for kind in sorted(kinds, key=lambda k: k.plural):
        # Namespaces cannot be deleted all at once, here as upstream.
        verbs = [v for v in _VERBS if kind.name != "Namespace" or v != "deletecollection"]
        resource: dict[str, Any] = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": verbs,
        }
        if kind.short_names:
            resource["shortNames"] = list(kind.short_names)
        if kind.categories:
            resource["categories"] = list(kind.categories)
        resources.append(resource)
        for part in sorted(kind.subresources):
            sub_verbs, speaks = _SUBRESOURCES[part]
            resources.append(
                {
                    "name": f"{kind.plural}/{part}",
                    "singularName": "",
                    "namespaced": kind.namespaced,
                    "kind": kind.kind,
                    **speaks,
                    "verbs": sub_verbs,
                }
            )
    return resources


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    """`versions`: the best one first."""
    served = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": served, "preferredVersion": served[0]}


def documents(kinds: Mapping[str, Kind]) -> dict[str, tuple[bytes, str]]:
    """Every fixed document: path -> (body, content type)."""
    by_group: dict[tuple[str, str], list[Kind]] = {}
    for kind in kinds.values():
        for served in kind.versions:
            by_group.setdefault((served.group, served.version), []).append(served)
    groups: dict[str, list[str]] = {}
    for group, version in sorted(by_group, key=lambda key: version_rank(key[1]), reverse=True):
        groups.setdefault(group, []).append(version)
    named = {group: _group(group, versions) for group, versions in sorted(groups.items()) if group}
    docs: dict[str, Any] = {
        "/api": {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        },
        "/apis": {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": list(named.values()),
        },
        "/version": {
            "major": "1",
            "minor": "32",
            "gitVersion": GIT_VERSION,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": f"python{platform.python_version()}",
            "compiler": platform.python_implementation(),
            "platform": f"{platform.system().lower()}/{platform.machine()}",
        },
        **openapi_documents(kinds.values()),
    }
    for (group, version), members in by_group.items():
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        docs[path] = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": _resources(members),
        }
    for group, told in named.items():
        docs[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **told}
    ready = {path: (orjson.dumps(doc), JSON) for path, doc in docs.items()}
    ready["/openapi/v2"] = (b"", "application/octet-stream")
    for probe in ("/healthz", "/livez", "/readyz"):
        ready[probe] = (b"ok", "text/plain; charset=utf-8")
    return ready
