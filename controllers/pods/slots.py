"""Slot names: the name of an owner's i-th pod is a function of the owner and i. So a create that is repeated, by any
worker and at any time, meets a name that is taken.

A name looks as if the API server had generated it: `<owner>-`, cut to 58 characters, and five characters of
the generator's alphabet. The five encode `(a*i + b) mod 27^5` with a and b taken from a hash of the owner's
UID; a is no multiple of 3, hence invertible, hence no two slots of one owner share a name.

Upstream: apiserver `pkg/storage/names/generate.go` (alphabet, lengths),
`pkg/controller/controller_utils.go` (prefix).
"""

import re
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from hashlib import sha256

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_CHARS = 5
BASE_CHARS_MAX = 58
SLOTS: int = len(ALPHABET) ** SUFFIX_CHARS
assert len(ALPHABET) == 27, "inverting a needs a modulus that is a power of three"

_PAIRS = tuple(x + y for x in ALPHABET for y in ALPHABET)
_PAIR_COUNT = len(_PAIRS)
_DIGIT = {char: value for value, char in enumerate(ALPHABET)}
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_SUBDOMAIN_CHARS_MAX = 253
_OWNERS_KEPT = 512


def name_prefix(owner_name: str) -> str:
    """generateName of an owner's pods: the name and a dash, or the bare name where that could not start a
    name.
    """
    prefix = f"{owner_name}-"
    # A trailing dash is legal in a prefix: it is judged with its last two characters replaced.
    judged = f"{prefix[:-2]}a" if len(prefix) > 1 else prefix
    legal = len(judged) <= _SUBDOMAIN_CHARS_MAX and _SUBDOMAIN.fullmatch(judged)
    return prefix if legal else owner_name


def base_of(owner_name: str) -> str:
    """The beginning of an owner's slot names."""
    return name_prefix(owner_name)[:BASE_CHARS_MAX]


class Slots:
    """The slot names of one owner, by index 0 .. 27^5 - 1."""

    __slots__ = ("_a", "_a_inverse", "_b", "base")

    def __init__(self, owner_name: str, owner_uid: str) -> None:
        digest = sha256(owner_uid.encode()).digest()
        a = int.from_bytes(digest[:8], "big") % SLOTS
        self._a = a + 1 if a % 3 == 0 else a
        self._a_inverse = pow(self._a, -1, SLOTS)
        self._b = int.from_bytes(digest[8:16], "big") % SLOTS
        self.base = base_of(owner_name)

    def name(self, index: int) -> str:
        """Name of the slot. Raises IndexError outside 0 .. 27^5 - 1."""
        if not 0 <= index < SLOTS:
            raise IndexError(f"slot {index} is not in 0..{SLOTS - 1}")
        return self.base + _suffix((self._a * index + self._b) % SLOTS)

    def index_of(self, name: str) -> int | None:
        """The slot with this name; None if no slot of this owner has it."""
        if len(name) != len(self.base) + SUFFIX_CHARS or not name.startswith(self.base):
            return None
        value = 0
        for char in name[-SUFFIX_CHARS:]:
            digit = _DIGIT.get(char)
            if digit is None:
                return None
            value = value * len(ALPHABET) + digit
        return (value - self._b) * self._a_inverse % SLOTS

    def free(self, taken: Container[str]) -> Iterator[str]:
        """Names that are not taken, lowest index first."""
        a, base, value = self._a, self.base, self._b
        for _ in range(SLOTS):
            name = base + _suffix(value)
            if name not in taken:
                yield name
            value += a
            if value >= SLOTS:
                value -= SLOTS

    def ordered(self, names: Iterable[str]) -> list[str]:
        """The names by index; names that are no slot names come last, in the order of the alphabet."""
        return sorted(names, key=lambda name: (SLOTS if (i := self.index_of(name)) is None else i, name))


@lru_cache(maxsize=_OWNERS_KEPT)
def slots_of(owner_name: str, owner_uid: str) -> Slots:
    """The slots of an owner; kept for a while, since a burst needs the same owner several times."""
    return Slots(owner_name, owner_uid)


def _suffix(value: int) -> str:
    rest, last = divmod(value, len(ALPHABET))
    first, second = divmod(rest, _PAIR_COUNT)
    return _PAIRS[first] + _PAIRS[second] + ALPHABET[last]
