"""Names of API versions, and which of them is the better one."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES: Final = {"alpha": 0, "beta": 1, None: 2}


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Sorts the best version last: v2 over v1 over v1beta1 over v1alpha1 over any other name.

    Upstream: apimachinery/pkg/version/helpers.go, CompareKubeAwareVersionStrings.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return -1, 0, 0, "".join(chr(0x10FFFF - ord(char)) for char in version)
    return _STAGES[match[2]], int(match[1]), int(match[3] or 0), ""
