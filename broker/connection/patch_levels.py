"""Whether a server's version has the fix of CVE-2025-49844: a script that whoever may run EVAL writes can take over
the server. Distributions put the fix into older versions without another number, so what is said is a hint.

docs/redis.md has the same table; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Version = tuple[int, ...]

FIXED: Final[Mapping[str, tuple[Version, ...]]] = {
    "Redis": ((6, 2, 20), (7, 2, 11), (7, 4, 6), (8, 0, 4), (8, 2, 2)),
    "Valkey": ((7, 2, 11), (8, 0, 6), (8, 1, 4)),
}
"""The first fixed release of each line that was fixed. Newer lines were born with it; others have no fix upstream."""


def hint(told: Mapping[str, str]) -> str:
    """What a person should look up, given the server section of INFO; "" for a version with the fix."""
    name = "Valkey" if "valkey_version" in told else "Redis"
    said = told.get(f"{name.lower()}_version", "")
    version = tuple(int(part) for part in said.split(".") if part.isdecimal())
    if not version or has_fix(name, version):
        return ""
    return (
        f"{name} {said} is older than the fix of CVE-2025-49844, unless your distribution has put it into this version:"
        " look at its changelog (docs/redis.md, patch levels)"
    )


def has_fix(name: str, version: Version) -> bool:
    """Whether upstream's release of this version has it."""
    fixed = FIXED[name]
    line = next((each for each in fixed if each[:2] == version[:2]), None)
    return version >= line if line is not None else version[:2] > fixed[-1][:2]
