"""Objects of the cluster without a client installed: create, get, list, patch, delete; from dicts, YAML and files."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from oarlock.cluster.answer import Answer
from oarlock.cluster.client import PatchType
from oarlock.cluster.listing import ListError, list_all
from oarlock.cluster.resources import Resource
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.manifests.documents import parse
from oarlock.testing.running import Running
from oarlock.testing.view import Target, View

Obj = dict[str, Any]
Objs = list[Obj]
Source = Mapping[str, Any] | str | Path
"""A dict, the text of YAML or JSON documents, or the path of a file of them."""


class Refused(Exception):
    """The server refused a request. ``code`` is 0 where there was no answer; ``reason`` as in "AlreadyExists"."""

    def __init__(self, doing: str, answer: Answer) -> None:
        status = answer.status
        self.code, self.reason = max(0, answer.code), status.reason if status is not None else ""
        super().__init__(f"{doing}: {self.code or 'no answer'} {self.reason}: {answer.message}".replace(" :", ":"))


class Objects:
    """Requests by a test's own helpers: faults befall them as they do any client's."""

    def __init__(self, running: Running, view: View) -> None:
        self._running, self._view, self._client = running, view, running.client

    def create(self, source: Source, namespace: str) -> Objs:
        """All objects of ``source``, in order. Raises Refused, ValueError (UnknownKind) and sandbox's Unreadable."""
        return [self._create(dict(each), namespace) for each in documents(source)]

    def _create(self, obj: Obj, namespace: str) -> Obj:
        word, version = obj.get("kind"), obj.get("apiVersion")
        if not isinstance(word, str) or not isinstance(version, str):
            raise ValueError(f"an object needs apiVersion and kind, here are {version!r} and {word!r}")
        kind = self._view.kind(word, version.rpartition("/")[0])
        metadata = obj.get("metadata") or {}
        where = (metadata.get("namespace") or namespace) if kind.namespaced else ""
        body = orjson.dumps(obj)
        name = metadata.get("name") or metadata.get("generateName", "")
        return self._asked(
            f"create {kind.singular}/{name}",
            self._client.create(replace(_resource(kind), api_version=version), where, body),
        )

    def get(self, target: Target) -> Obj:
        """Raises Refused; 404 where it does not exist."""
        call = self._client.get(_resource(target.kind), target.namespace, target.name)
        return self._asked(f"get {target.title}", call)

    def list(self, target: Target) -> Objs:
        """Every object of a kind in the namespace, each with its kind and apiVersion. Raises Refused."""
        resource = _resource(target.kind)
        pages = self._client.list_pages(resource, namespace=target.namespace, label_selector=target.selector)
        try:
            _, items = self._running.io.run(list_all(pages))
        except ListError as error:
            raise Refused(f"list {target.title}", error.answer) from None
        identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [{**identity, **orjson.loads(item)} for item in items]

    def patch(self, target: Target, change: Mapping[str, Any], subresource: str) -> Obj:
        """A merge patch (RFC 7386). Raises Refused."""
        resource, where, name = _resource(target.kind), target.namespace, target.name
        body = orjson.dumps(change)
        call = self._client.patch(resource, where, name, body, PatchType.MERGE, subresource=subresource)
        return self._asked(f"patch {target.title}", call)

    def delete(self, target: Target, propagation: str = "") -> None:
        """Raises Refused."""
        call = self._client.delete(_resource(target.kind), target.namespace, target.name, propagation=propagation)
        self._asked(f"delete {target.title}", call)

    def _asked(self, doing: str, call: Coroutine[Any, Any, Answer]) -> Obj:
        answer = self._running.io.run(call)
        if not answer.ok:
            raise Refused(doing, answer)
        return answer.object()


def documents(source: Source) -> list[Mapping[str, Any]]:
    """The objects that a source holds. Raises sandbox's Unreadable, with the line."""
    if isinstance(source, Mapping):
        return [source]
    raw, name = (source.read_bytes(), str(source)) if isinstance(source, Path) else (source.encode(), "the text given")
    return [document.value for document in parse(raw, name)]


def _resource(kind: Kind) -> Resource:
    # `name` is the store's key; the word that objects carry is the one that their lists are named after.
    return Resource(kind.api_version, kind.plural, kind.list_name.removesuffix("List"), kind.namespaced)
