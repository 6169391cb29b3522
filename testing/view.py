"""The objects of a running cluster as the server holds them: what waits look at, whatever faults befall requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.text.selectors import selector_for
from oarlock.testing.running import Running

Obj = dict[str, Any]


class UnknownKind(ValueError):
    """A word that names no kind of this server; the text names those there are."""


@dataclass(frozen=True, slots=True)
class Target:
    """One object, or with ``name`` "" those of a kind. ``namespace`` "": of all, or of a kind without one."""

    kind: Kind
    namespace: str
    name: str = ""
    selector: str = ""

    @property
    def title(self) -> str:
        """As people write it: "deployment/web", "pods with app=web"."""
        if self.name:
            return f"{self.kind.singular}/{self.name}"
        return f"{self.kind.plural} with {self.selector}" if self.selector else self.kind.plural


class View:
    """Reads on the server's loop, from any thread."""

    def __init__(self, running: Running) -> None:
        self._running, self._store = running, running.api.store

    def kind(self, word: str, group: str | None = None) -> Kind:
        """By kind, plural, singular or short name, also "deployments.apps". Raises UnknownKind."""
        name, _, of_group = word.lower().partition(".")
        group = of_group or group
        for kind in self._store.kinds.values():
            words = (kind.name.lower(), kind.plural, kind.singular, *kind.short_names)
            if name in words and (group is None or group == kind.group):
                return kind
        known = ", ".join(sorted(kind.singular for kind in self._store.kinds.values()))
        of = f" of group {group!r}" if group is not None else ""
        raise UnknownKind(f"there is no kind {word!r}{of} on this server; there are: {known}")

    def resource(self, word: str) -> str:
        """As requests name it: "pods" or "pods/status", of any word for the kind; "*" is all. Raises UnknownKind."""
        of, slash, part = word.partition("/")
        return word if word == "*" else f"{self.kind(of).plural}{slash}{part}"

    def target(self, what: str, namespace: str, selector: str = "") -> Target:
        """ "pod/web-1" or "pods". Raises UnknownKind."""
        word, _, name = what.partition("/")
        kind = self.kind(word)
        return Target(kind, namespace if kind.namespaced else "", name, selector)

    def read(self, target: Target) -> Obj | list[Obj] | None:
        """The object or None; of a kind: the list, by name. Raises ValueError for a selector that cannot be read."""
        kind, namespace = target.kind, target.namespace
        if target.name:
            return self._running.call(lambda: self._store.get(kind.name, namespace, target.name))
        try:
            wanted = selector_for(kind, target.selector, "")
        except ApiError as error:
            raise ValueError(f"selector {target.selector!r}: {error.message}") from None
        found = self._running.call(lambda: self._store.list(kind.name, namespace or None))
        return [each for each in found if wanted is None or wanted.matches(each)]

    def below(self, uid: str, namespace: str) -> list[tuple[Kind, Obj]]:
        """What an object owns, and what that owns."""
        kinds = [kind for kind in self._store.kinds.values() if kind.namespaced]
        every = self._running.call(
            lambda: [(kind, obj) for kind in kinds for obj in self._store.list(kind.name, namespace or None)]
        )
        found: list[tuple[Kind, Obj]] = []
        owners = {uid}
        while more := [
            (kind, obj)
            for kind, obj in every
            if any(ref["uid"] in owners for ref in obj["metadata"].get("ownerReferences") or ())
            and obj["metadata"]["uid"] not in {known["metadata"]["uid"] for _, known in found}
        ]:
            found += more
            owners = {obj["metadata"]["uid"] for _, obj in more}
        return found

    def row(self, kind: Kind, obj: Obj) -> dict[str, str]:
        """What `kubectl get` shows of an object: column -> cell."""
        cells = kind.printer.row(obj, self._store.clock())
        shown = zip(kind.printer.columns, cells, strict=True)
        return {column.name: str(cell) for column, cell in shown if column.priority == 0}

    @contextmanager
    def changes(self, target: Target) -> Iterator[threading.Event]:
        """An event that is set whenever an object of the target's kind and namespace has changed."""
        changed = threading.Event()

        def seen(event: Event) -> None:
            if event.kind.name == target.kind.name and target.namespace in ("", event.namespace):
                changed.set()

        end = self._running.call(lambda: self._store.subscribe(seen))
        try:
            yield changed
        finally:
            self._running.call(end)
