"""Defaulting of pod specs, once for each content.

Pods made from one template arrive with the same spec, parsed anew each time. Equal specs become one shared
object: defaulting and validation are done once, and the store keeps it once. Specs that are equal but for the
place where the pod is to run share their parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import orjson

from oarlock.sandbox.apiserver.defaulting.pod_spec import default_pod_spec

Obj = dict[str, Any]

V = TypeVar("V")

CONTENTS_MAX: Final = 512
IDENTITIES_MAX: Final = 4096
OWN_FIELDS: Final = ("affinity", "nodeName")
"""The part of a spec in which the pods of one template differ: where each of them is to run.

A DaemonSet's pods are made from one template and each has a node affinity of its own. Neither defaulting nor
validation has a rule that joins these fields with others, so the rest is worked out once for all of them.
"""


def parted(spec: Obj) -> tuple[Obj, Obj]:
    """What pods of one template have in common, and what is this pod's own; `spec` itself if nothing is."""
    own: Obj = {field: spec[field] for field in OWN_FIELDS if field in spec}
    if not own:
        return spec, own
    return {field: value for field, value in spec.items() if field not in own}, own


class IdentityMemo(Generic[V]):
    """A bounded memory of what was computed for an object, by the object's identity.

    Objects of this API are never changed once they are handed on, so what held for one holds for ever. Pods of one
    owner share their spec, and a patch shares what it did not touch: most lookups hit. The objects known here are kept
    alive, so an id cannot come to mean another object.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, V]] = {}

    def get(self, obj: object) -> V | None:
        """What was remembered for exactly this object, or None."""
        entry = self._entries.get(id(obj))
        return entry[1] if entry is not None else None

    def put(self, obj: object, value: V) -> None:
        """Remember `value`. Everything is forgotten when there are too many entries."""
        if len(self._entries) >= IDENTITIES_MAX:
            self._entries.clear()
        self._entries[id(obj)] = (obj, value)


class SpecMemo:
    """Defaulted specs by content. `more` adds what a pod has beyond a template."""

    __slots__ = ("_by_content", "_common", "_complete", "_more")

    def __init__(self, more: Callable[[Obj], Obj] | None = None) -> None:
        self._more = more
        self._by_content: dict[bytes, Obj] = {}
        self._common: dict[bytes, Obj] = {}  # without the fields that are a pod's own
        self._complete: IdentityMemo[bool] = IdentityMemo()

    def defaulted(self, spec: Obj) -> Obj:
        """`spec` with its defaults; the same object for equal content, `spec` itself if it lacks nothing.

        Neither may be changed afterwards.
        """
        if self._complete.get(spec):
            return spec
        content = orjson.dumps(spec)
        known = self._by_content.get(content)
        if known is not None:
            return known
        common, own = parted(spec)
        filled = {**self._filled(orjson.dumps(common), common), **own} if own else self._filled(content, spec)
        _put(self._by_content, content, filled)
        self._complete.put(filled, True)
        return filled

    def _filled(self, content: bytes, spec: Obj) -> Obj:
        """`spec`, whose JSON is `content`, with its defaults."""
        known = self._common.get(content)
        if known is None:
            known = default_pod_spec(spec)
            if self._more is not None:
                known = self._more(known)
            _put(self._common, content, known)
        return known


def _put(memo: dict[bytes, Obj], content: bytes, filled: Obj) -> None:
    if len(memo) >= CONTENTS_MAX:
        memo.clear()
    memo[content] = filled
