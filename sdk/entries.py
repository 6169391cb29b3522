"""Definitions -> the entries of the registry: what is watched, for whom, and the controllers with their fan-outs.

All definitions of a process are taken together, because they may share kinds: each is watched and cached once.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oarlock.controllers.columns import WHOLE
from oarlock.controllers.entries import (
    CustomController,
    DesiredController,
    ReferenceFanOut,
    StepsController,
    Watched,
    owned_children,
)
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects import whole
from oarlock.controllers.whole_routes import OwnerQueue, WholeRoutes
from oarlock.sdk.context import runs, undoes
from oarlock.sdk.definitions import Definition, Watch
from oarlock.sdk.index import names_index, wakes_index
from oarlock.sdk.kinds import BadDefinition, Kind
from oarlock.sdk.results import misfit, own_type, want
from oarlock.sdk.types.columns import cells
from oarlock.sdk.types.fields import paths_of

Entry = Watched[Any] | CustomController | ReferenceFanOut


@dataclass(slots=True)
class _Use:
    """What a kind is to all definitions together. ``whole``: somebody needs all of its fields."""

    kind: Kind
    short_name: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)
    owners: dict[tuple[str, str], list[OwnerQueue]] = field(default_factory=dict)
    fan_outs: list[str] = field(default_factory=list)
    index: list[Any] = field(default_factory=list)
    fields: set[str] = field(default_factory=set)
    whole: bool = False

    def needs(self, fields: Sequence[str]) -> None:
        self.whole = self.whole or not fields
        self.fields.update(fields)

    def watched(self) -> Watched[Any]:
        routes = WholeRoutes(
            tuple(self.own), {kind: tuple(queues) for kind, queues in self.owners.items()}, tuple(self.fan_outs)
        )
        kind = self.kind
        fields = () if self.whole else sorted(self.fields)
        return Watched(
            api_version=kind.api_version,
            plural=kind.plural,
            kind=kind.kind,
            short_name=self.short_name,
            from_json=whole.reader(
                kind.api_version,
                kind.kind,
                fields,
                tuple(self.index),
            ),
            decode=whole.decode_whole,
            route=lambda obj, gone, owners: routes.route(obj, gone),
            columns=cells(self.columns, fields) or WHOLE,
            namespaced=kind.namespaced,
            cached_as=kind.resource,
            whole=True,
        )


def entries_of(definitions: Iterable[Definition]) -> list[Entry]:
    """The entries, in the order in which they are to be registered. Raises BadDefinition."""
    uses: dict[str, _Use] = {}
    controllers: list[CustomController] = []
    fan_outs: list[tuple[str, str, str]] = []
    definitions = list(definitions)
    for each in definitions:
        if any(each.name == other.name for other in definitions if other is not each):
            raise BadDefinition(f"two controllers are called {each.name}: give one of them another name=")
        own = _use(uses, each.kind)
        own.own.append(each.name)
        own.needs(_fields(each))
        if each.model is not None:
            own.short_name = next(iter(each.model.served.short_names), own.short_name)
            own.columns = own.columns or each.model.served.columns
        for kind in dict.fromkeys(each.children):
            child = _use(uses, kind)
            child.needs(())
            owner = OwnerQueue(each.name, each.kind.namespaced)
            child.owners.setdefault((each.kind.group, each.kind.kind), []).append(owner)
        if len({watch.kind for watch in each.watches}) < len(each.watches):
            raise BadDefinition(f"{each.name}: it watches a kind twice; one watch a kind, whose function says all")
        for watch in each.watches:
            fan_outs += _watch(uses, each, watch)
    watched = {resource: use.watched() for resource, use in uses.items()}
    controllers = [_controller(each, watched, _rivals(each, definitions)) for each in definitions]
    return [
        *watched.values(),
        *controllers,
        *(
            ReferenceFanOut(queue=queue, watched=watched[resource], owners=owners.resource, target=owners.name)
            for queue, resource, name in fan_outs
            for owners in [_Owners.of(definitions, name)]
        ),
    ]


def _fields(definition: Definition) -> tuple[str, ...]:
    """Those of its own objects that are cached: asked for, or named by the type. None: all."""
    fields = definition.fields
    if not fields and definition.model is not None:
        fields = paths_of(definition.model)
    return (*fields, "status") if fields else ()


@dataclass(frozen=True, slots=True)
class _Owners:
    resource: str
    name: str

    @classmethod
    def of(cls, definitions: Sequence[Definition], name: str) -> _Owners:
        return next(cls(each.kind.resource, each.name) for each in definitions if each.name == name)


def _use(uses: dict[str, _Use], kind: Kind) -> _Use:
    like = (use.kind for use in uses.values() if use.kind.resource == kind.resource or use.kind.is_like(kind))
    known = next(like, kind)
    if known != kind:
        raise BadDefinition(
            f"{_in_full(known)} and {_in_full(kind)} are both used: use one of them for all controllers of a process;"
            " a class, or an oarlock.Kind, says the plural and whether there are namespaces"
        )
    return uses.setdefault(kind.resource, _Use(kind))


def _in_full(kind: Kind) -> str:
    return f"{kind} ({kind.plural}, {'namespaced' if kind.namespaced else 'without namespaces'})"


def _watch(uses: dict[str, _Use], definition: Definition, watch: Watch) -> list[tuple[str, str, str]]:
    """Enter a watch. Returns its fan-out: queue, resource of its keys, controller."""
    resource = watch.kind.resource
    use = _use(uses, watch.kind)
    use.needs(watch.fields)
    if watch.wakes is not None:
        use.index.append(wakes_index(definition, watch))
        return []
    queue = f"{definition.name}-{resource}"
    use.fan_outs.append(queue)
    uses[definition.kind.resource].index.append(names_index(definition, watch, own_type(definition)))
    return [(queue, resource, definition.name)]


def _rivals(definition: Definition, definitions: Sequence[Definition]) -> tuple[str, ...]:
    """The other desired-state controllers of its objects that may want the same children."""
    return tuple(
        each.name
        for each in definitions
        if each is not definition
        and each.style == "desired"
        and each.kind == definition.kind
        and set(each.children) & set(definition.children)
    )


def _controller(definition: Definition, watched: dict[str, Watched[Any]], rivals: tuple[str, ...]) -> CustomController:
    owned = tuple(dict.fromkeys(kind.resource for kind in definition.children))
    name, kind = definition.name, definition.kind
    common: dict[str, Any] = {
        "name": name,
        "owners": watched[kind.resource],
        "concurrent_syncs": f"concurrent_{name.replace('-', '_')}_syncs",
        "flavour": Flavour(kind.api_version, kind.kind, name, colocates=False, has_terminating=False),
        "children": owned_children(owned),
        "owned": owned,
        "watched": tuple(dict.fromkeys(each.kind.resource for each in definition.watches)),
        "names": tuple(dict.fromkeys(each.kind.resource for each in definition.watches if each.names is not None)),
        "finalizer": definition.finalizer,
        "every_ms": None if definition.every_s is None else max(1, round(definition.every_s * 1000)),
        "retry_base_ms": max(1, round(definition.retry.base_s * 1000)),
        "retry_max_ms": max(1, round(definition.retry.max_s * 1000)),
        "concurrency": definition.concurrency,
        "rate_per_s": definition.rate_per_s,
        "misfit": misfit(definition),
    }
    if definition.style == "desired":
        return DesiredController(want=want(definition), rivals=rivals, **common)
    if definition.finalizer and not definition.undo:
        raise BadDefinition(
            f"{name}: nothing would ever remove its finalizer: put @{definition.function.__name__}.finalize above the"
            " function that undoes what it does outside"
        )
    return StepsController(
        run=runs(definition),
        is_async=definition.is_async,
        undo=undoes(definition),
        undo_is_async=any(inspect.iscoroutinefunction(undo.function) for undo in definition.undo),
        undo_reads=any(undo.raw for undo in definition.undo),
        **common,
    )
