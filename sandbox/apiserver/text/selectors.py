"""Label and field selectors as list, watch and delete-collection take them; labels and selectors as such text.

Syntax and meaning of label selectors follow upstream's
staging/src/k8s.io/apimachinery/pkg/labels/selector.go; field selectors are `name=value`, `name==value` or
`name!=value`, joined by commas, over the fields a kind declares selectable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from oarlock.sandbox.apiserver.errors import bad_request, quoted

if TYPE_CHECKING:  # the kinds' printers write labels as text
    from oarlock.sandbox.apiserver.kinds.kinds import Kind

Obj = dict[str, Any]
Labels = dict[str, str]
LabelTest = Callable[[Labels], bool]

_REQUIREMENT: Final = re.compile(
    r"""\s*(?:
        !\s*(?P<absent>[^\s,=!<>()]+)
      | (?P<key>[^\s,=!<>()]+)\s*(?:
            (?P<op>==|=|!=|>|<)\s*(?P<value>[^\s,=!<>()]*)
          | (?P<set>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)
_LABEL_KEY: Final = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _compare(key: str, greater: bool, limit: int) -> LabelTest:
    def test(labels: Labels) -> bool:
        value = _number(labels.get(key, ""))
        return value is not None and (value > limit if greater else value < limit)

    return test


def _check(text: str, pattern: re.Pattern[str], what: str, selector: str) -> str:
    if not pattern.fullmatch(text):
        raise bad_request(f"unable to parse requirement: {what} {quoted(text)} is not valid in {quoted(selector)}")
    return text


def _label_test(match: re.Match[str], selector: str) -> LabelTest:
    key = _check(match["absent"] or match["key"], _LABEL_KEY, "label key", selector)
    if match["absent"]:
        return lambda labels: key not in labels
    if match["set"]:
        values = frozenset(v.strip() for v in match["values"].split(","))
        for value in values:
            _check(value, _LABEL_VALUE, "label value", selector)
        if match["set"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    operator, value = match["op"], match["value"]
    if operator is None:
        return lambda labels: key in labels
    if operator in (">", "<"):
        limit = _number(value)
        if limit is None:
            raise bad_request(f"unable to parse requirement: {quoted(value)} is not an integer in {quoted(selector)}")
        return _compare(key, operator == ">", limit)
    _check(value, _LABEL_VALUE, "label value", selector)
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value


@lru_cache(maxsize=256)
def label_tests(selector: str) -> tuple[LabelTest, ...]:
    """One test for each requirement of `selector`. Raises ApiError 400 if it cannot be read."""
    tests = []
    position = 0
    while position < len(selector):
        match = _REQUIREMENT.match(selector, position)
        if match is None or match.end() == position:
            raise bad_request(
                f"unable to parse requirement: found {quoted(selector[position:])} in {quoted(selector)}, "
                "expected a label requirement"
            )
        tests.append(_label_test(match, selector))
        position = match.end()
    if selector.rstrip().endswith(","):
        raise bad_request(f"unable to parse requirement: {quoted(selector)} ends with a comma")
    return tuple(tests)


@lru_cache(maxsize=256)
def field_terms(selector: str) -> tuple[tuple[str, bool, str], ...]:
    """(field, whether equal, value) for each term. Raises ApiError 400 if it cannot be read."""
    terms = []
    for term in filter(None, selector.split(",")):
        field, unequal, value = term.partition("!=")
        if not unequal:
            field, equal, value = term.partition("==" if "==" in term else "=")
            if not equal:
                raise bad_request(f"invalid selector: {quoted(selector)}; can't understand {quoted(term)}")
        terms.append((field.strip(), not unequal, value.strip()))
    return tuple(terms)


class Selector:
    """What a request wants to see: `matches(object)`. Selecting everything is the absence of one."""

    __slots__ = ("_fields", "_kind", "_labels", "only_name")

    def __init__(self, kind: Kind, labels: tuple[LabelTest, ...], fields: tuple[tuple[str, bool, str], ...]) -> None:
        self._kind = kind
        self._labels = labels
        self._fields = fields
        # The one name that can match, so that a watch or list of a single object need not look at others.
        self.only_name = next((v for f, equal, v in fields if f == "metadata.name" and equal), None)

    def matches(self, obj: Obj) -> bool:
        meta = obj["metadata"]
        if self.only_name is not None and meta["name"] != self.only_name:
            return False
        if self._labels:
            labels = meta.get("labels") or {}
            if not all(test(labels) for test in self._labels):
                return False
        if not self._fields:
            return True
        values = self._kind.selectable(obj)
        values["metadata.name"] = meta["name"]
        values["metadata.namespace"] = meta.get("namespace", "")
        return all((values[field] == value) is equal for field, equal, value in self._fields)


_NOTHING: Final[Obj] = {"metadata": {"name": ""}}


def selector_for(kind: Kind, labels: str, fields: str, name: str = "") -> Selector | None:
    """The selector for a request, or None if it takes every object. `name` restricts it to one object.

    Raises ApiError 400 for a selector that cannot be read or names a field that `kind` does not offer.
    """
    tests, terms = label_tests(labels), field_terms(fields)
    known = {"metadata.name", "metadata.namespace", *kind.selectable(_NOTHING)}
    for field, _, _ in terms:
        if field not in known:
            raise bad_request(f"field label not supported: {field}")
    if name:
        terms = (*terms, ("metadata.name", True, name))
    return Selector(kind, tests, terms) if tests or terms else None


def labels_text(labels: Mapping[str, str] | None) -> str:
    """`a=1,b=2`; empty for none."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A metav1.LabelSelector (upstream: FormatLabelSelector); empty for one that selects everything."""
    selector = selector or {}
    parts = [labels_text(selector.get("matchLabels"))]
    for term in selector.get("matchExpressions") or ():
        key, operator = term["key"], term["operator"]
        values = ",".join(sorted(term.get("values") or ()))
        parts.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[operator]
        )
    return ",".join(filter(None, parts))
