"""Of an object, only what was asked for: a projection by paths such as `spec.template.metadata.labels`.

A path goes through lists by itself: `spec.containers.image` is the image of each. A name with dots in it stands in
brackets: `metadata.annotations[example.com/owner]`. `[]` and `[*]` may be written and say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Tree = dict[str, Any]
"""Name of a field -> the same of what is below it, None for all of it."""

IDENTITY = (
    *("apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.generation"),
    *("metadata.labels", "metadata.ownerReferences", "metadata.finalizers"),
    *("metadata.creationTimestamp", "metadata.deletionTimestamp"),
)
"""What is kept of every object, whatever else is asked for."""

_STEP = re.compile(r"\.?([A-Za-z0-9_-]+)|\[([^\[\]*]+)\]|\[\*?\]")


def steps(path: str) -> tuple[str, ...]:
    """The names of fields on the way. Raises ValueError for what is no path."""
    found: list[str] = []
    at = 0
    for step in _STEP.finditer(path):
        if step.start() != at:
            break
        at = step.end()
        if name := step[1] or step[2]:
            found.append(name)
    if at != len(path) or not found or path[:1] in ".[":
        raise ValueError(f"{path!r} is no path to a field: write it as spec.image or metadata.annotations[a.b/c]")
    return tuple(found)


def tree(paths: Iterable[str]) -> Tree:
    """What `projected` takes. A path to the whole of something covers those below it. Raises ValueError."""
    root: Tree = {}
    for path in paths:
        *way, last = steps(path)
        node: Tree | None = root
        for name in way:
            assert node is not None
            node = node.setdefault(name, {})
            if node is None:
                break
        if node is not None:
            node[last] = None
    return root


def projected(value: Any, asked: Tree | None) -> Any:
    """What was asked for of a decoded object, in the order of the paths. Parts are shared with the object.

    A value of another form than the paths expect stays whole: its type will say what is wrong with it.
    """
    if asked is None:
        return value
    if isinstance(value, dict):
        return {name: projected(value[name], below) for name, below in asked.items() if name in value}
    if isinstance(value, list):
        return [projected(each, asked) for each in value]
    return value
