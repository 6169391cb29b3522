"""JSON paths as printer columns, selectable fields and scales name them: `.spec.hosts[0].name`.

The part of kubectl's syntax that definitions use: fields (`.a`, `['a.b']`, dots escaped by a backslash), positions
(`[0]`, `[-1]`), everything (`[*]`), and filters (`[?(@.type=="Ready")]`). Upstream:
staging/src/k8s.io/client-go/util/jsonpath/parser.go.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

import orjson

Step = Callable[[Any], Iterable[Any]]

_STEP: Final = re.compile(
    r"""
      \.(?P<field>(?:[^.\[\]\\*{}]|\\.)+)
    | \[\s*'(?P<quoted>(?:[^'\\]|\\.)*)'\s*\]
    | \[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]
    | \[\s*(?P<position>-?\d+)\s*\]
    | (?P<all>\.\*|\[\*\])
    | \[\?\(\s*@(?P<inner>(?:\.(?:[^.\[\]\\*=!<>\s)]|\\.)+|\['[^']*'\])+)\s*
        (?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>"[^"]*"|'[^']*'|[^\s)]+)\s*)?\)\]
    """,
    re.VERBOSE,
)
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class BadPath(ValueError):
    """A path that cannot be read, or has a syntax that is not served here; the message is for people."""


@lru_cache(maxsize=1024)
def compiled(path: str) -> tuple[Step, ...]:
    """The steps of `path`. Raises BadPath."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("$")
    if not text.startswith((".", "[")):
        raise BadPath(f"{path!r} must begin with a dot")
    steps: list[Step] = []
    position = 0
    while position < len(text) and text != ".":
        match = _STEP.match(text, position)
        if match is None:
            raise BadPath(f"{path!r} cannot be read from {text[position:]!r} on")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def found(path: str, obj: Any) -> list[Any]:
    """Everything that `path` leads to in `obj`. Raises BadPath."""
    values = [obj]
    for step in compiled(path):
        values = [result for value in values for result in step(value)]
    return values


def first(path: str, obj: Any) -> Any:
    """The first value that `path` leads to, or None. Raises BadPath."""
    values = found(path, obj)
    return values[0] if values else None


def plain_fields(path: str) -> list[str]:
    """The fields of a path that has nothing else in it: `.spec.replicas`. Raises BadPath."""
    fields = path.removeprefix(".").split(".")
    if not path.startswith(".") or not all(fields) or any(char in path for char in "[]*\\"):
        raise BadPath(f"{path!r} must be a simple path of fields")
    return fields


def with_value(obj: dict[str, Any], fields: list[str], value: Any) -> dict[str, Any]:
    """`obj` with `value` at the end of `fields`; what is not on the way is shared."""
    head, *rest = fields
    if not rest:
        return {**obj, head: value}
    inner = obj.get(head)
    return {**obj, head: with_value(inner if isinstance(inner, dict) else {}, rest, value)}


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _step(match: re.Match[str]) -> Step:
    name = next((match[group] for group in ("field", "quoted", "double") if match[group] is not None), None)
    if name is not None:
        key = _unescaped(name)
        return lambda value: [value[key]] if isinstance(value, dict) and key in value else []
    if match["position"] is not None:
        index = int(match["position"])
        return lambda value: value[index:][:1] if isinstance(value, list) else []
    if match["all"]:
        return _everything
    inner, compare, wanted = match["inner"], _COMPARE.get(match["op"] or ""), _literal(match["value"] or "")

    def chosen(value: Any) -> list[Any]:
        return [item for item in _everything(value) if _fits(found(inner, item), compare, wanted)]

    return chosen


def _everything(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _fits(values: list[Any], compare: Callable[[Any, Any], bool] | None, wanted: Any) -> bool:
    if compare is None:
        return bool(values)
    try:
        return any(compare(value, wanted) for value in values)
    except TypeError:  # things that have no order
        return False
