"""What the API held at a resourceVersion, from the journal of a simulated cluster. Invariant I6 is compared with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Line(Protocol):
    """A line of a journal, which is in the order of its resourceVersions."""

    @property
    def rv(self) -> int: ...
    @property
    def resource(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def gone(self) -> bool: ...


@dataclass(slots=True)
class _Held:
    """Of one resource, after so many ``lines``: key -> resourceVersion."""

    rv: int = 0
    lines: int = 0
    objects: dict[str, str] = field(default_factory=dict)


class Replay:
    """Goes on from the version that was asked for last, unless an earlier one is asked for."""

    def __init__(self, journal: Sequence[Line]) -> None:
        self._journal = journal
        self._held: dict[str, _Held] = {}

    def held(self, resource: str, rv: int) -> Mapping[str, str]:
        """Key -> resourceVersion of all objects of a resource."""
        held = self._held.get(resource)
        if held is None or rv < held.rv:
            held = self._held[resource] = _Held()
        held.rv = rv
        while held.lines < len(self._journal) and self._journal[held.lines].rv <= rv:
            line = self._journal[held.lines]
            held.lines += 1
            if line.resource == resource:
                held.objects.pop(line.key, None)
                if not line.gone:
                    held.objects[line.key] = str(line.rv)
        return held.objects
