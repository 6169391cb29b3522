"""Objects as the ingestors stored them, and the ways to read many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Cached(NamedTuple):
    """rv, uid and blob of a cached object; the blob is the reader's own encoding.

    ``signature``: a word that the writer may put beside it; the broker keeps it and does not read it. ``apart``: for
    the owner in a claim, the part that is stored once for all owners that share it; b"" where the claim has counts.
    """

    rv: str
    uid: str
    blob: bytes
    signature: str = ""
    apart: bytes = b""

    @classmethod
    def parse(cls, value: bytes, apart: bytes = b"") -> Cached:
        """From a value of the cache, "rv uid [signature]\\nindex entries\\nwake keys\\nblob"."""
        head, _, _, blob = value.split(b"\n", 3)
        words = head.decode().split(" ", 2)
        return tuple.__new__(cls, (words[0], words[1], blob, words[2] if len(words) == 3 else "", apart))

    @classmethod
    def parse_all(
        cls, values: Sequence[bytes], ending_of: Callable[[bytes], bytes | None] | None = None
    ) -> list[Cached]:
        """As ``parse``, for many. A claim may bring thousands, so each costs no more than the texts it is cut into.

        ``ending_of``: by index entries, what ends the blobs before their uids and was left out of them.
        """
        found, make = [], tuple.__new__
        for value in values:
            head, entries, _, blob = value.split(b"\n", 3)
            words = head.decode().split(" ", 2)
            if ending_of is not None and (ending := ending_of(entries)) is not None:
                blob = b"".join((blob, ending, words[1].encode()))
            found.append(make(cls, (words[0], words[1], blob, words[2] if len(words) == 3 else "", b"")))
        return found


class Delta(NamedTuple):
    """What changed in a resource that workers keep in memory, since the version that the claim named.

    ``version``: the one to name next time; "" where the resource was never listed in this epoch, so that nothing is
    known of it. ``full``: ``changed`` is all there is, whatever was known before. ``changed``: id and object of each
    that changed or came. ``gone``: ids of those that went, known before or not. The rv of an object is that of its
    last changed projection, or a later one. ``unread``: ``load`` brings all there is.
    """

    version: str
    full: bool = False
    changed: Sequence[tuple[str, Cached]] = ()
    gone: Sequence[str] = ()
    unread: bool = False


class PageMark(NamedTuple):
    """Where the next page begins, in the generation that the earlier pages were read from."""

    generation: str
    place: str
    left: tuple[str, ...] = ()


class PageLimits(NamedTuple):
    """About how many objects, and how many bytes of them, a page brings. It always brings some."""

    count_max: int = 500
    bytes_max: int = 262_144


PAGE = PageLimits()
"""A page that does not hold up Redis for long."""


class Page(NamedTuple):
    """Some of the objects under index entries, each once, and the watermark at which they were read.

    ``mark``: None after the last page. An object that is under an entry from the first page to the last is in one of
    them, or in two. Each page shows its objects as they were when it was read.
    """

    watermark: str
    objects: list[Cached]
    mark: PageMark | None
