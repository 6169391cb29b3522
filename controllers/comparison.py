"""Whether a live object holds all that was wanted of it, as server-side apply understands it.

Objects are compared field by field; what the live one has beyond the wish is another's business. A list of objects is
compared by the field that is its merge key in Kubernetes's own types, wherever all elements have one; other lists as
a whole, as the server replaces them as a whole.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

Difference = tuple[str, str]
"""A path, and what the live object has there, as JSON; empty if it has nothing."""
Differences = tuple[Difference, ...]

MERGE_KEYS = ("name", "containerPort", "port", "mountPath", "devicePath", "ip", "type", "uid", "topologyKey")
"""Upstream: the listMapKeys and patchMergeKeys of k8s.io/api, the more usual ones first."""
_SETS = frozenset((".metadata.finalizers",))
"""Lists of words to which others may add."""


def differences(wanted: Any, live: Any) -> Differences:
    """Where the live object does not hold what is wanted; empty if it does."""
    found: list[Difference] = []
    _compare(wanted, live, "", found)
    return tuple(found)


def _compare(wanted: Any, live: Any, path: str, found: list[Difference]) -> None:
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            if _says_something(wanted) or live is not None:
                _differs(path, live, found)
            return
        for name, value in wanted.items():
            there = live.get(name)
            if value is there or (value == there and type(value) is type(there)):
                continue
            _compare(value, there, f"{path}.{name}", found)
    elif isinstance(wanted, list):
        _compare_lists(wanted, live, path, found)
    elif wanted is not None and (wanted != live or isinstance(wanted, bool) is not isinstance(live, bool)):
        _differs(path, live, found)


def _compare_lists(wanted: list[Any], live: Any, path: str, found: list[Difference]) -> None:
    if not isinstance(live, list):
        if wanted or live is not None:
            _differs(path, live, found)
        return
    if path in _SETS:
        if not all(each in live for each in wanted):
            _differs(path, live, found)
        return
    key = merge_key(wanted, live)
    if key is None:
        if len(wanted) != len(live):
            _differs(path, live, found)
            return
        for at, (ours, theirs) in enumerate(zip(wanted, live, strict=True)):
            _compare(ours, theirs, f"{path}[{at}]", found)
        return
    by_key = {each[key]: each for each in live}
    for each in wanted:
        _compare(each, by_key.get(each[key]), f"{path}[{key}={each[key]}]", found)


def merge_key(wanted: Sequence[Any], live: Sequence[Any]) -> str | None:
    """The field that tells the elements of both lists apart; None if there is none."""
    if not wanted or not all(isinstance(each, dict) for each in (*wanted, *live)):
        return None
    for key in MERGE_KEYS:
        if _tells_apart(key, wanted) and _tells_apart(key, live):
            return key
    return None


def _tells_apart(key: str, elements: Sequence[Any]) -> bool:
    values = [each.get(key) for each in elements]
    return all(isinstance(value, str | int) for value in values) and len(set(values)) == len(values)


def _differs(path: str, live: Any, found: list[Difference]) -> None:
    found.append((path, "" if live is None else msgspec.json.encode(live).decode()))


def _says_something(wanted: Any) -> bool:
    """Whether there is a value in it: empty objects, empty lists and nulls go without saying."""
    if isinstance(wanted, dict):
        return any(_says_something(value) for value in wanted.values())
    return bool(wanted) if isinstance(wanted, list) else wanted is not None
