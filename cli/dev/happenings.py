"""What happens in a cluster to the objects of an operator, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from oarlock.cluster.client import Client
from oarlock.cluster.resources import Resource
from oarlock.sandbox.reflector import Reflector
from oarlock.workers.process.log_line import printable

Obj = dict[str, Any]
Key = tuple[str, str, str]

EVENTS = Resource("v1", "events", "Event", True)
SHOWN_MAX = 3
"""Changed fields that a line tells."""
_UNTOLD = frozenset({"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"})
_QUIET = ("observedGeneration", "lastTransitionTime", "lastUpdateTime", "oarlock.io/applied")


@dataclass(slots=True)
class Happenings:
    """``own``: kinds of the controllers' objects. ``told``: the lines that nobody has read yet; any thread may.

    Of another kind only the objects that one of these controls are told.
    """

    own: frozenset[str]
    told: SimpleQueue[str] = field(default_factory=SimpleQueue)
    _known: dict[Key, Obj] = field(default_factory=dict)

    async def follow(self, client: Client, resource: Resource) -> None:
        """Tell all that happens to the objects of a resource, until cancelled."""
        tell = self.event if resource == EVENTS else lambda obj, gone: self.change(resource.kind, obj, gone)
        await Reflector(client, resource, tell).run()

    def change(self, kind: str, obj: Obj, gone: bool) -> None:
        """An object is new, has changed or has gone."""
        meta = obj["metadata"]
        owner = next((ref for ref in meta.get("ownerReferences") or () if ref.get("controller")), None)
        if kind not in self.own and (owner is None or owner.get("kind") not in self.own):
            return
        key = kind, meta.get("namespace", ""), meta["name"]
        before = self._known.pop(key, None)
        if gone:
            self._tell("-", key, "")
            return
        self._known[key] = obj
        if before is None:
            self._tell("+", key, f"of {owner['kind']} {owner['name']}" if owner and kind not in self.own else "")
        elif changes := list(_changes(before, obj)):
            more = f", and {len(changes) - SHOWN_MAX} more" if len(changes) > SHOWN_MAX else ""
            self._tell("~", key, ", ".join(changes[:SHOWN_MAX]) + more)

    def event(self, obj: Obj, gone: bool) -> None:
        """An Event about one of the objects."""
        about = obj.get("involvedObject") or {}
        key = str(about.get("kind", "")), str(about.get("namespace", "")), str(about.get("name", ""))
        if gone or (key[0] not in self.own and key not in self._known):
            return
        times = obj.get("count") or 1
        if str(times).strip("0") != "1":  # what happens again and again is told the 1st, 10th, 100th time
            return
        mark = "!" if obj.get("type") == "Warning" else " "
        count = f" ({times} times)" if times > 1 else ""
        self._tell(mark, key, f"{obj.get('reason', '')}: {obj.get('message', '')}{count}")

    def _tell(self, mark: str, key: Key, text: str) -> None:
        kind, namespace, name = key
        title = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
        self.told.put(printable(f"{mark} {title:32} {text}".rstrip()))


def _changes(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The fields that differ, with their values if these are short."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            if name not in _UNTOLD and name not in _QUIET:
                yield from _changes(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    elif before != after:
        yield path if isinstance(after, list | dict) else f"{path}={_short(after)}"


def _short(value: Any) -> str:
    text = "gone" if value is None else str(value)
    return text if len(text) <= 40 else text[:37] + "..."
