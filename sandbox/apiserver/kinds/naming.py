"""Names and uids the server gives (upstream: staging/src/k8s.io/apiserver/pkg/storage/names/generate.go)."""

from __future__ import annotations

import random
from collections.abc import Container
from typing import Final

ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # nothing that spells a word
SUFFIX_LENGTH: Final = 5
_BASE_MAX: Final = 63 - SUFFIX_LENGTH
_TRIES_MAX: Final = 8


class Naming:
    """Draws from a generator of its own; `seed` None: a different one each time."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        """A version 4 UUID; formatted by hand, for this is done for every pod."""
        digits = f"{self._random.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def name(self, prefix: str, taken: Container[str]) -> str:
        """`prefix`, cut if need be, and a suffix; after a few tries it may still be one that is taken."""
        name = ""
        for _ in range(_TRIES_MAX):
            suffix = "".join(self._random.choices(ALPHABET, k=SUFFIX_LENGTH))
            name = prefix[:_BASE_MAX] + suffix
            if name not in taken:
                break
        return name
