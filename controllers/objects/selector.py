"""Label selectors: parsed once when an object is projected, matched cheaply ever after.

Upstream: apimachinery `pkg/labels/selector.go` and `pkg/apis/meta/v1/helpers.go` (LabelSelectorAsSelector).
A missing selector (None where the object has none) matches nothing; an empty one matches everything, except
where orphans are routed to owners (see routing.py), where it matches nothing.
"""

import re
from collections.abc import Mapping

import msgspec

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_SUBDOMAIN_CHARS_MAX = 253
_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")


class InvalidSelector(ValueError):
    """A selector the API would refuse; its owner is left alone until it changes."""


class Requirement(msgspec.Struct, frozen=True, array_like=True):
    """One entry of matchExpressions: key, operator (In, NotIn, Exists, DoesNotExist) and values."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil this requirement. NotIn holds as well when the key is absent."""
        operator = self.operator
        if operator == "In":
            return self.key in labels and labels[self.key] in self.values
        if operator == "NotIn":
            return self.key not in labels or labels[self.key] not in self.values
        if operator == "Exists":
            return self.key in labels
        return self.key not in labels

    @property
    def query(self) -> str:
        """As a list asks for it. Upstream: `pkg/labels/selector.go` (Requirement.String)."""
        match self.operator:
            case "In" | "NotIn":
                return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"
            case "Exists":
                return self.key
        return f"!{self.key}"


class LabelSelector(msgspec.Struct, frozen=True, array_like=True):
    """A selector with the verdict of its validation. Build it with `label_selector`, which validates.

    `error` is empty for a valid selector. It is kept with the selector because validation needs regular
    expressions, which have no place in a turn.
    """

    match_labels: dict[str, str]
    expressions: tuple[Requirement, ...] = ()
    error: str = ""

    @property
    def empty(self) -> bool:
        """No requirement at all."""
        return not self.match_labels and not self.expressions

    @property
    def query(self) -> str:
        """As a list asks for it (labelSelector); of an empty selector "", which asks for everything."""
        labels = [f"{key}={value}" for key, value in self.match_labels.items()]
        return ",".join([*labels, *(requirement.query for requirement in self.expressions)])

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether every requirement holds; an empty selector matches everything.

        Raises InvalidSelector if the selector did not pass validation.
        """
        if self.error:
            raise InvalidSelector(self.error)
        if not self.match_labels.items() <= labels.items():
            return False
        for requirement in self.expressions:  # noqa: SIM110 - a generator costs more than the whole loop
            if not requirement.matches(labels):
                return False
        return True


def label_selector(match_labels: Mapping[str, str] | None, expressions: tuple[Requirement, ...] = ()) -> LabelSelector:
    """Build a selector and note what, if anything, is wrong with it in its `error`."""
    labels = dict(match_labels or {})
    return LabelSelector(labels, expressions, _first_error(labels, expressions))


def _first_error(match_labels: Mapping[str, str], expressions: tuple[Requirement, ...]) -> str:
    for key, value in match_labels.items():
        if error := _key_error(key) or _value_error(value):
            return error
    for requirement in expressions:
        if error := _requirement_error(requirement):
            return error
    return ""


def _requirement_error(requirement: Requirement) -> str:
    if requirement.operator in _WITH_VALUES:
        if not requirement.values:
            return f"selector: {requirement.operator} on {requirement.key!r} needs at least one value"
    elif requirement.operator in _WITHOUT_VALUES:
        if requirement.values:
            return f"selector: {requirement.operator} on {requirement.key!r} takes no values"
    else:
        return f"selector: {requirement.operator!r} is not an operator of a label selector"
    if error := _key_error(requirement.key):
        return error
    return next((error for value in requirement.values if (error := _value_error(value))), "")


def _key_error(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _SUBDOMAIN_CHARS_MAX or not _SUBDOMAIN.fullmatch(prefix)):
        return f"selector: {key!r} has a prefix that is not a DNS subdomain"
    if not _NAME.fullmatch(name):
        return f"selector: {key!r} is not a label key"
    return ""


def _value_error(value: str) -> str:
    if value and not _NAME.fullmatch(value):
        return f"selector: {value!r} is not a label value"
    return ""
