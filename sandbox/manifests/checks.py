"""Check the user's objects before anything starts, by the embedded API's own rules.

Every problem is one line: file and line, document, object, field, what is wrong, and the mend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson

from oarlock.controllers.registry import CONTROLLERS
from oarlock.sandbox.apiserver import defaulting, validation
from oarlock.sandbox.apiserver.errors import ApiError, FieldError
from oarlock.sandbox.apiserver.kinds.kinds import KINDS, Kind
from oarlock.sandbox.apiserver.kinds.strategies import for_create
from oarlock.sandbox.apiserver.shapes import check_shape
from oarlock.sandbox.manifests.documents import Document
from oarlock.sandbox.manifests.mends import mended, of_shape, unknown_fields

Obj = dict[str, Any]

SELF_ACTING = frozenset({"CustomResourceDefinition", "Namespace", "Node", "Pod", "ResourceQuota"})
"""Kinds that the API server and the simulated nodes act on themselves."""


@dataclass(frozen=True, slots=True)
class Item:
    """One object fit to be applied, with its namespace filled in ("" where the kind has none)."""

    kind: Kind
    namespace: str
    name: str
    obj: Obj

    @property
    def title(self) -> str:
        """``ReplicaSet shop/cart``."""
        return f"{self.kind.name} {self.namespace}/{self.name}" if self.namespace else f"{self.kind.name} {self.name}"


@dataclass(slots=True)
class Checked:
    """``items`` in order; ``problems``: lines that forbid starting; ``notes``: lines worth saying."""

    items: list[Item] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check(
    documents: Iterable[Document],
    *,
    namespace: str = "default",
    skip_unknown: bool = False,
    defined: Mapping[tuple[str, str], Kind] = MappingProxyType({}),
) -> Checked:
    """Check all. ``namespace`` is for objects that name none; ``skip_unknown``: kinds not served are only noted.

    ``defined``: apiVersion and kind -> kinds that will be served because something defines them. Their objects are
    left to the server to check.
    """
    found = Checked()
    unknown: Counter[str] = Counter()
    for document in documents:
        kind, problems = _identified(document)
        custom = defined.get(_words(document.value)) if kind is None and not problems else None
        if custom is not None:
            found.items.append(_item(custom, document, namespace))
            continue
        if kind is None and not problems:
            word = _kind_word(document.value)
            unknown[word] += 1
            if not skip_unknown:
                found.problems.append(
                    f"{_where(document, 'kind')} ({word}): this kind is not served here, only {_served()};"
                    " take it out, or add --skip-unknown"
                )
            continue
        if kind is not None and not problems:
            item = _item(kind, document, namespace)
            problems = [_line(document, item, error) for error in _field_errors(item)]
            if not problems:
                found.items.append(item)
        found.problems += problems
    if skip_unknown and unknown:
        found.notes.append(f"left out, because these kinds are not served here: {_counted(unknown)}")
    acted_on = SELF_ACTING | _acted_on() | {kind.name for kind in defined.values()}
    idle = Counter(item.kind.name for item in found.items if item.kind.name not in acted_on)
    if idle:
        found.notes.append(f"stored, but no controller acts on them yet: {_counted(idle)}")
    return found


def _acted_on() -> frozenset[str]:
    return frozenset(controller.flavour.kind for controller in CONTROLLERS.values())


def _served() -> str:
    acted = sorted(_acted_on() & KINDS.keys())
    return ", ".join([*acted, *sorted(KINDS.keys() - set(acted))])


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(kinds.items()))


def _words(value: Obj) -> tuple[str, str]:
    return value["apiVersion"], value["kind"]


def _kind_word(value: Obj) -> str:
    return " ".join(_words(value))


def _where(document: Document, path: str) -> str:
    return f"{document.source}:{document.line_of(path)}: {document.name}"


def _identified(document: Document) -> tuple[Kind | None, list[str]]:
    """The kind if it is served, and what is wrong with the three fields that say what an object is."""
    value = document.value
    if not isinstance(value, dict):
        return None, [f"{_where(document, '')}: not an object; give a mapping with apiVersion, kind and metadata"]
    problems = [
        f"{_where(document, name)}: {name}: missing; {mend}"
        for name, mend in (("apiVersion", "give one, such as apps/v1"), ("kind", "give one, such as ReplicaSet"))
        if not isinstance(value.get(name), str) or not value[name]
    ]
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        why = "missing" if name in (None, "") else f"{_shown(name)} is not text"
        problems.append(f"{_where(document, 'metadata.name')}: metadata.name: {why}; give the object a name")
    if problems:
        return None, problems
    kind = KINDS.get(value["kind"])
    if kind is not None and kind.api_version != value["apiVersion"]:
        same_group = value["apiVersion"].rpartition("/")[0] == kind.group or _was_moved(value["apiVersion"])
        if same_group:
            return None, [
                f"{_where(document, 'apiVersion')} ({kind.name} {name}): apiVersion: {value['apiVersion']} is not"
                f" served; write {kind.api_version}"
            ]
        kind = None
    return kind, []


def _was_moved(api_version: str) -> bool:
    """Whether workloads once lived there; they are all in apps/v1 since Kubernetes 1.16."""
    return api_version in ("extensions/v1beta1", "apps/v1beta1", "apps/v1beta2", "v1", "apps/v1")


def _item(kind: Kind, document: Document, namespace: str) -> Item:
    metadata = dict(document.value["metadata"])
    if kind.namespaced and not metadata.get("namespace"):
        metadata["namespace"] = namespace
    where = str(metadata.get("namespace") or "") if kind.namespaced else ""
    return Item(kind, where, metadata["name"], {**document.value, "metadata": metadata})


def _field_errors(item: Item) -> Iterator[FieldError]:
    """What the server would refuse, and fields that it would not know."""
    yield from unknown_fields(item.kind.name, item.obj)
    kind = item.kind
    try:
        check_shape(kind.name, item.obj)
        obj = defaulting.apply(kind.name, for_create(kind, item.obj))
    except ApiError as error:
        yield of_shape(error.message)
        return
    seen: set[tuple[str, str]] = set()
    for problem in validation.validate_create(kind.name, obj):
        if (problem.field, problem.message) not in seen:
            seen.add((problem.field, problem.message))
            yield problem


def _line(document: Document, item: Item, error: FieldError) -> str:
    return f"{_where(document, error.field)} ({item.title}): {error.field}: {mended(error)}"


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()
