"""Controllers of one's own beside the built-in ones, in the cluster of a test: registered, and their kinds defined."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from oarlock.cluster.client import Client
from oarlock.cluster.resources import Resource
from oarlock.controllers.entries import Watched
from oarlock.controllers.registry import register, unregister
from oarlock.sdk.definitions import Definition
from oarlock.sdk.entries import Entry, entries_of
from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.loading import load
from oarlock.sdk.types.crd import crds_of, models_of
from oarlock.workers.process.io_loop import IoLoop

CRDS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)

What = Sequence[Definition] | str | Path
"""Definitions, or the file or module that holds them."""


class _Known:
    """Controllers that clusters of this process have, with their entries. ``users``: how many clusters."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        """Registers them. Raises BadDefinition; nothing is registered then."""
        self.definitions, self.users = definitions, 0
        self._entries: list[Entry] = []
        made = entries_of(definitions)
        for other in _known:
            if shared := other.names & {_name(each) for each in made}:
                raise BadDefinition(
                    f"operator={_called(definitions)}: a cluster of this process with operator="
                    f"{_called(other.definitions)} has {', '.join(sorted(shared))} too; give both the same controllers,"
                    " or stop that one first"
                )
        try:
            for entry in made:
                register(entry)
                self._entries.append(entry)
        except ValueError as error:
            self.unregister()
            raise BadDefinition(f"operator={_called(definitions)}: {error}; give it another name=") from None

    @property
    def names(self) -> set[str]:
        return {_name(each) for each in self._entries}

    def unregister(self) -> None:
        while self._entries:
            unregister(self._entries.pop())


def _listed(what: Any) -> list[Definition]:
    """Raises BadDefinition for what is no list of controllers."""
    if isinstance(what, Definition):
        raise BadDefinition(f"operator= has to be a list: write [{what.name}]")
    found = list(what) if isinstance(what, Iterable) else [what]
    for each in found:
        if not isinstance(each, Definition):
            raise BadDefinition(
                f"operator= holds {each!r:.80}: give functions below @oarlock.desired or @oarlock.steps"
            )
    return found


def _name(entry: Entry) -> str:
    """What the registry knows it by."""
    return entry.resource if isinstance(entry, Watched) else entry.queue


def _called(definitions: Sequence[Definition]) -> str:
    return f"[{', '.join(each.name for each in definitions)}]"


_known: list[_Known] = []
"""A process has one registry. Clusters with the same controllers share their entries."""


class Operator:
    """As a context manager: while it is entered, this process knows the controllers and their kinds."""

    def __init__(self, what: What) -> None:
        """Raises BadDefinition."""
        self._definitions = load(what) if isinstance(what, str | Path) else _listed(what)
        self._mine: _Known | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the controllers, as --controllers takes them."""
        return tuple(each.name for each in self._definitions)

    def __enter__(self) -> Operator:
        """Raises BadDefinition, also where another running cluster has other controllers of the same kinds."""
        known = next((each for each in _known if each.definitions == self._definitions), None)
        if known is None:
            known = _Known(self._definitions)
            _known.append(known)
        known.users += 1
        self._mine = known
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        known, self._mine = self._mine, None
        if known is None:
            return
        known.users -= 1
        if not known.users:
            _known.remove(known)
            known.unregister()

    def define(self, client: Client, io: IoLoop) -> None:
        """Define the kinds that have a type. Raises BadDefinition, and RuntimeError where the server refuses one."""
        for crd in crds_of(models_of(self._definitions)):
            answer = io.run(client.create(CRDS, "", json.dumps(crd).encode()))
            if not answer.ok and answer.code != 409:
                raise RuntimeError(f"{crd['metadata']['name']} could not be defined: {answer.message}")
