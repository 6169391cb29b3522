"""Controllers of one's own beside the built-in ones, in the cluster of a test: registered, and their kinds defined."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from oarlock.cluster.client import Client
from oarlock.cluster.resources import Resource
from oarlock.controllers.registry import register, unregister
from oarlock.sdk.definitions import Definition
from oarlock.sdk.entries import Entry, entries_of
from oarlock.sdk.loading import load
from oarlock.sdk.types.crd import crds_of, models_of
from oarlock.workers.process.io_loop import IoLoop

CRDS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)

What = Sequence[Definition] | str | Path
"""Definitions, or the file or module that holds them."""


class Operator:
    """As a context manager: while it is entered, this process knows the controllers and their kinds."""

    def __init__(self, what: What) -> None:
        """Raises BadDefinition."""
        self._definitions = load(what) if isinstance(what, str | Path) else list(what)
        self._entries: list[Entry] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Of the controllers, as --controllers takes them."""
        return tuple(each.name for each in self._definitions)

    def __enter__(self) -> Operator:
        """Raises BadDefinition, and ValueError for a name that another running cluster has."""
        try:
            for entry in entries_of(self._definitions):
                register(entry)
                self._entries.append(entry)
        except ValueError:
            self._forget()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forget()

    def _forget(self) -> None:
        while self._entries:
            unregister(self._entries.pop())

    def define(self, client: Client, io: IoLoop) -> None:
        """Define the kinds that have a type. Raises BadDefinition, and RuntimeError where the server refuses one."""
        for crd in crds_of(models_of(self._definitions)):
            answer = io.run(client.create(CRDS, "", json.dumps(crd).encode()))
            if not answer.ok and answer.code != 409:
                raise RuntimeError(f"{crd['metadata']['name']} could not be defined: {answer.message}")
