"""OpenAPI v3 documents of custom kinds: what `kubectl explain` reads, and why kubectl has the server check fields.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go. There is a document for
each group and version that has custom kinds; built-in kinds have none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from oarlock.sandbox.apiserver.custom.structural import PRESERVE, Schema
from oarlock.sandbox.apiserver.kinds.kind import Kind

Doc = dict[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_TYPE_FIELDS: Final[Schema] = {
    "apiVersion": {
        "type": "string",
        "description": f"APIVersion defines the versioned schema of this object. More info: {_CONVENTIONS}#resources",
    },
    "kind": {
        "type": "string",
        "description": f"Kind is a string value representing this object. More info: {_CONVENTIONS}#types-kinds",
    },
}
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECT_META: Final[Schema] = {
    "type": "object",
    "description": "ObjectMeta is metadata that all persisted resources must have.",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), _TEXT),
        **{field: {"type": "string", "format": "date-time"} for field in ("creationTimestamp", "deletionTimestamp")},
        **{field: {"type": "integer", "format": "int64"} for field in ("generation", "deletionGracePeriodSeconds")},
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"type": "array", "items": _TEXT},
        "ownerReferences": {"type": "array", "items": {"type": "object", PRESERVE: True}},
        "managedFields": {"type": "array", "items": {"type": "object", PRESERVE: True}},
    },
}
_FIELD_VALIDATION: Final[Doc] = {
    "name": "fieldValidation",
    "in": "query",
    "description": "fieldValidation instructs the server on how to handle unknown fields: Ignore, Warn or Strict.",
    "schema": {"type": "string", "uniqueItems": True},
}


def openapi_documents(kinds: Iterable[Kind]) -> dict[str, Doc]:
    """Every document by its path; `/openapi/v3` lists the others."""
    by_version: dict[tuple[str, str], list[Kind]] = {}
    for kind in kinds:
        for version in kind.versions:
            if version.custom is not None:
                by_version.setdefault((version.group, version.version), []).append(version)
    documents = {f"apis/{group}/{version}": _document(members) for (group, version), members in by_version.items()}
    # A hash in the address lets clients keep a document; without one they ask each time.
    listed = {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in documents}
    return {"/openapi/v3": {"paths": listed}, **{f"/openapi/v3/{name}": doc for name, doc in documents.items()}}


def _document(kinds: list[Kind]) -> Doc:
    schemas: dict[str, Schema] = {_META: _OBJECT_META}
    paths: dict[str, Doc] = {}
    for kind in kinds:
        said = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
        name = f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}"
        schemas[name] = {**_published(kind), "x-kubernetes-group-version-kind": said}
        where = "/namespaces/{namespace}" if kind.namespaced else ""
        whole = f"/apis/{kind.group}/{kind.version}{where}/{kind.plural}"
        answer = {"200": {"description": "OK", "content": {"application/json": {"schema": _reference(name)}}}}
        operation: Doc = {"responses": answer, "x-kubernetes-group-version-kind": said[0]}
        paths[whole] = {"get": operation, "post": {**operation, "parameters": [_FIELD_VALIDATION]}}
        change = {**operation, "parameters": [_FIELD_VALIDATION]}
        paths[f"{whole}/{{name}}"] = {"get": operation, "put": change, "patch": change, "delete": operation}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.32.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _reference(name: str) -> Doc:
    return {"$ref": f"#/components/schemas/{name}"}


def _published(kind: Kind) -> Schema:
    """The structural schema as clients see it, with the fields that every object has."""
    assert kind.custom is not None, "only custom kinds have a schema here"
    schema = dict(kind.custom.schema)
    metadata = {"allOf": [_reference(_META)], "description": f"Standard object's metadata. More info: {_CONVENTIONS}"}
    return {**schema, "properties": {**_TYPE_FIELDS, **schema.get("properties", {}), "metadata": metadata}}
