"""Defaulting of pod specs, once for each content.

Pods made from one template arrive with the same spec, parsed anew each time. Equal specs become one shared
object: defaulting and validation are done once, and the store keeps it once. Specs that are equal but for the
place where the pod is to run share their parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.defaulting.pod_spec import default_pod_spec
from oarlock.sandbox.apiserver.kinds.placement_parts import parted
from oarlock.sandbox.apiserver.store.identity_memo import IdentityMemo

Obj = dict[str, Any]

CONTENTS_MAX: Final = 512


class SpecMemo:
    """Defaulted specs by content. `more` adds what a pod has beyond a template."""

    __slots__ = ("_by_content", "_common", "_complete", "_more")

    def __init__(self, more: Callable[[Obj], Obj] | None = None) -> None:
        self._more = more
        self._by_content: dict[bytes, Obj] = {}
        self._common: dict[bytes, Obj] = {}  # without what is a pod's own
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
