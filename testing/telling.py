"""What a wait in vain tells: what is missing, what there is, what it owns, what was reported about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import yaml

from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.testing.until import Condition, Found
from oarlock.testing.view import Obj, Target, View

EVENTS_MAX = 10


def told(view: View, target: Target, until: Callable[[Any], Any], missing: str, found: Found, timeout_s: float) -> str:
    """The message, without a newline at its end."""
    where = f" in namespace {target.namespace}" if target.namespace else ""
    wanted = until.name if isinstance(until, Condition) else "as the condition of the test wants it"
    parts = [f"{target.title}{where} was not {wanted} within {timeout_s:g} s: {missing}"]
    objects = found if isinstance(found, list) else [found] if found is not None else []
    if objects:
        parts.append(_table(view, [(target.kind, each) for each in objects]))
    below = [each for obj in objects for each in view.below(obj["metadata"]["uid"], target.namespace)]
    if below:
        parts.append("It owns:\n" + _table(view, below))
    about = {obj["metadata"]["uid"] for obj in objects} | {obj["metadata"]["uid"] for _, obj in below}
    if events := _events(view, target.namespace, about):
        parts.append("Events:\n" + events)
    if target.name and objects:
        parts.append("The object:\n" + _indented(_as_yaml(objects[0])))
    if not objects and target.name:
        others = view.read(Target(target.kind, target.namespace))
        assert isinstance(others, list)
        names = ", ".join(each["metadata"]["name"] for each in others)
        parts.append(f"There {'are: ' + names if names else f'is no {target.kind.singular}'}{where}.")
    return "\n\n".join(parts)


def _table(view: View, objects: Sequence[tuple[Kind, Obj]]) -> str:
    """As `kubectl get` would print them, a table a kind."""
    tables = []
    for kind in dict.fromkeys(kind for kind, _ in objects):
        rows = [view.row(kind, obj) for each, obj in objects if each is kind]
        lines = [list(rows[0]), *(list(row.values()) for row in rows)]
        lines[0] = [name.upper() for name in lines[0]]
        widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
        table = ["   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        tables.append(f"{kind.plural}:\n" + _indented("\n".join(table)))
    return "\n".join(tables)


def _events(view: View, namespace: str, about: set[str]) -> str:
    found = view.read(Target(view.kind("event"), namespace)) if namespace else []
    assert isinstance(found, list)
    ours = [each for each in found if each.get("involvedObject", {}).get("uid") in about]
    lines = [
        f"{each.get('type', '')} {each.get('reason', '')} {each['involvedObject'].get('kind', '').lower()}/"
        f"{each['involvedObject'].get('name', '')}: {each.get('message', '')}"
        for each in ours[-EVENTS_MAX:]
    ]
    return _indented("\n".join(lines))


def _as_yaml(obj: Obj) -> str:
    shown = {**obj, "metadata": {name: part for name, part in obj["metadata"].items() if name != "managedFields"}}
    return str(yaml.safe_dump(shown, sort_keys=False)).rstrip()


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
