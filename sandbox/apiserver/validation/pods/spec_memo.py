"""Validation of pod specs, once for each spec.

A controller creates hundreds of pods from one template and writes its owner's status at every turn. Specs
known to be good are recognised by identity, whatever path they stand at; of specs that differ only in the place
where the pod is to run, only that is looked at.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.kinds.placement_parts import parted
from oarlock.sandbox.apiserver.store.identity_memo import IdentityMemo
from oarlock.sandbox.apiserver.validation.pods import pod_spec

_CONTENTS_MAX: Final = 512

_GOOD: Final[IdentityMemo[bool]] = IdentityMemo()
_GOOD_COMMON: Final[set[bytes]] = set()


def pod_spec_errors(spec: dict[str, Any], path: str) -> list[FieldError]:
    """As `pod_spec.pod_spec_errors`. `spec` must not be changed afterwards."""
    if _GOOD.get(spec):
        return []
    common, own = parted(spec)
    content = orjson.dumps(common) if own else b""
    if content in _GOOD_COMMON and not pod_spec.own_placement_errors(own, path):
        _GOOD.put(spec, True)
        return []
    errors = pod_spec.pod_spec_errors(spec, path)
    if not errors:
        _GOOD.put(spec, True)
        if own:
            if len(_GOOD_COMMON) >= _CONTENTS_MAX:
                _GOOD_COMMON.clear()
            _GOOD_COMMON.add(content)
    return errors
