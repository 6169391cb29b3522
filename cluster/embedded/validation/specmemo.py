"""Validation of pod specs, once for each spec.

A controller creates hundreds of pods from one template and writes its owner's status at every turn. Specs
known to be good are recognised by identity, whatever path they stand at.
"""

from __future__ import annotations

from typing import Any, Final

from cluster.embedded.errors import FieldError
from cluster.embedded.identitymemo import IdentityMemo
from cluster.embedded.validation import podspec

_GOOD: Final[IdentityMemo[bool]] = IdentityMemo()


def pod_spec_errors(spec: dict[str, Any], path: str) -> list[FieldError]:
    """As `podspec.pod_spec_errors`. `spec` must not be changed afterwards."""
    if _GOOD.get(spec):
        return []
    errors = podspec.pod_spec_errors(spec, path)
    if not errors:
        _GOOD.put(spec, True)
    return errors
