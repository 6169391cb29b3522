"""What an ingestor tells the broker: changes of objects, and the classes by which they are counted."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple


def class_name(text: bytes) -> str:
    """The name of the class with this text: its sign and a digest, as many objects have the same long text."""
    return chr(text[0]) + urlsafe_b64encode(blake2b(text, digest_size=8).digest()).decode().rstrip("=")


@lru_cache(2_048)
def class_of(kind: bytes, wakes: tuple[str, ...]) -> tuple[str, bytes]:
    """Name and text of the class of objects that count as this kind and wake these keys."""
    first, more, ending = kind.partition(b"\n")
    assert b" " not in first, "the keys that it wakes stand behind a blank"
    text = b" ".join((first, *map(str.encode, wakes))) + more + ending
    return class_name(text), text


def wakes_in(text: bytes) -> str:
    """The keys that objects of a class wake, from its text."""
    return text.partition(b"\n")[0].partition(b" ")[2].decode()


def kind_in(text: bytes) -> bytes:
    """What the objects of a class count as, from its text: all of it but the keys that they wake."""
    first, more, ending = text.partition(b"\n")
    return first.partition(b" ")[0] + more + ending


def ending_of(kind: bytes, uid: str) -> bytes:
    """What ends the blob of an object of a kind: what the kind says, and then the uid. It is not kept with the object.
    Where a kind has one line only, it says nothing.
    """
    _, more, ending = kind.partition(b"\n")
    return ending + uid.encode() if more else b""


def without_ending(blob: bytes, kind: bytes, uid: str) -> bytes:
    """The blob of an object of the kind as it is kept."""
    ending = ending_of(kind, uid)
    assert blob.endswith(ending), "a kind says how the blobs of its objects end"
    return blob.removesuffix(ending)


class Event(NamedTuple):
    """One change of a cached object. ``blob`` None: deleted. ``entries``: index entries. ``wakes``: "queue:key".

    ``signature``: a word to be kept beside it. A change of it alone, or of the rv alone, is no change of the object.
    ``apart``: name and bytes of a part that is stored once for all objects that name it. ``kind``: what the object
    counts as under the first of its entries, as text; b"" where it does not count. It begins with "+" or "-"
    (``LoadSpec``). What follows its first line, which has no blanks, ends the object's blob, before the uid, and is
    left out of ``blob``. ``change``: "added": it is new, and has a controller. "observed": its own controller, whose
    key is the first that it wakes, has observed its generation, as after a status of ours. "set": all else.
    """

    id: str
    rv: str
    uid: str
    blob: bytes | None
    entries: tuple[str, ...] = ()
    wakes: tuple[str, ...] = ()
    signature: str = ""
    apart: tuple[str, bytes] | None = None
    kind: bytes = b""
    change: str = "set"

    @property
    def word(self) -> str:
        """What happened to the object: its change, or "del"."""
        return "del" if self.blob is None else self.change

    def trigger(self, resource: str, task: str) -> str:
        """What queues a key that it wakes: its status is news to others than its own controller."""
        is_news = self.word == "observed" and (task,) != self.wakes[:1]
        return f"{'status' if is_news else self.word} {resource}/{self.id}"

    @property
    def whole(self) -> bytes:
        """The blob, as readers get it."""
        return (self.blob or b"") + ending_of(self.kind, self.uid)

    @property
    def size(self) -> int:
        """Bytes of the object and of the part that is stored apart."""
        return len(self.blob or b"") + (len(self.apart[1]) if self.apart else 0)

    @property
    def classed(self) -> tuple[str, bytes] | None:
        """Name and text of its class, if it has one."""
        counts = self.kind and self.blob is not None and (self.entries or self.apart)
        return class_of(self.kind, self.wakes) if counts else None

    @property
    def words(self) -> str:
        """Index entries and wake keys, as the scripts take them. A part apart is named behind a "*". The last word is
        the class, which has the wake keys.
        """
        entries = (*self.entries, f"*{self.apart[0]}") if self.apart else self.entries
        if (classed := self.classed) is not None:
            return " ".join((*entries, f"#{classed[0]}")) + "\n"
        return " ".join(entries) + "\n" + " ".join(self.wakes)

    @property
    def uid_and_signature(self) -> str:
        """As the scripts take it."""
        return f"{self.uid} {self.signature}" if self.signature else self.uid


class Ingested(NamedTuple):
    """Outcome of a batch: "OK", "GAP" (watch again from ``watermark``) or "NEEDLIST".

    ``woken``: where it was asked for, "queue:key", ms since when it is queued, and the number of the event that did it.
    """

    verdict: str
    watermark: str = ""
    added: int = 0
    skipped: int = 0
    woken: tuple[tuple[str, int, int], ...] = ()


class Compared(NamedTuple):
    """What the cache of a resource is, beside a part of a list. ``generation``: the one that is read. ``watermark``: ""
    where the resource was never listed. ``objects``: how many the generation that was asked for has. ``same``: how many
    of the part it has in the same version.
    """

    generation: str
    watermark: str
    objects: int
    same: int
