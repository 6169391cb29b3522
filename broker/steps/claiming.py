"""What a claim asks for and what it brings, and the ends of turns, in the words of claim.lua and finish.lua."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oarlock.broker.expectations import Expectations
from oarlock.broker.values.claims import NO_COUNTS, NO_OTHERS, Batch, Claim, ClaimLimits, LoadSpec, Unloaded, Watermark
from oarlock.broker.values.events import kind_in
from oarlock.broker.values.objects import Cached, Delta
from oarlock.broker.values.turns import Finish


def claim_args(holder: str, nonce: str, specs: Sequence[LoadSpec], limits: ClaimLimits) -> tuple[str | int, ...]:
    """Of claim.lua. The reply to them is for ``batch_in``."""
    sizes = limits.lease_ms, limits.drain_ms, limits.keys_max, limits.bytes_max
    return (holder, nonce, *sizes, limits.beside_text, limits.load_min, *(spec.text for spec in specs))


def finish_args(turns: Sequence[Finish]) -> list[str | int]:
    """Of finish.lua. The reply to them is for ``failures_in``."""
    flat: list[str | int] = [len(turns)]
    for turn in turns:
        delay = "" if turn.delay_ms is None else turn.delay_ms
        flat += (turn.queue, turn.key, turn.nonce, turn.verdict, delay, turn.did, len(turn.changes))
        for change in turn.changes:
            flat += change
    return flat


def failures_in(reply: list[Any]) -> list[int]:
    """Of each turn, in a row; -1 where its claim was lost."""
    return [int(each) for each in reply[1:]]


def batch_in(reply: list[Any], specs: Sequence[LoadSpec], nonce: str) -> Batch:
    """From the reply of a claim that took keys."""
    queue, marks = reply[1].decode(), reply[2]
    watermarks = {
        marks[i].decode(): Watermark(marks[i + 1].decode(), int(marks[i + 2])) for i in range(0, len(marks), 3)
    }
    further = next(spec.resources for spec in specs if spec.queue == queue)[1:]
    now_ms, flat_endings, rows = reply[4], reply[5], reply[6:]
    endings = _EndingsOfLines(zip(flat_endings[::2], flat_endings[1::2], strict=True)).__getitem__
    claims = [_claim(queue, nonce, now_ms, further, endings, *row) for row in rows]
    local_caches = {each[0].decode(): _delta(*each[1:]) for each in reply[3]}
    return Batch(queue, claims, watermarks, local_caches, [row[2] for row in rows])


class _EndingsOfLines(dict[bytes, "bytes | None"]):
    """What ends the blobs of a claim's objects, by the line with their index entries: only the first of these and the
    class count.
    """

    def __missing__(self, line: bytes) -> bytes | None:
        entries, _, name = line.partition(b" #")
        first = entries.partition(b" ")[0]
        return self.get(b"%b #%b" % (first, name)) if name else None


def _claim(
    queue: str,
    nonce: str,
    now_ms: int,
    further: Sequence[str],
    ending_of: Callable[[bytes], bytes | None],
    key: bytes,
    owner: bytes,
    _waited_ms: int,
    why: bytes,
    counts: list[bytes],
    children: Sequence[list[bytes]] = (),
    expectations: list[bytes] | None = None,
    min_rv: bytes = b"",
    unsettled: bytes = b"",
    crashes: int = 0,
    apart: bytes = b"",
    unloaded: Sequence[list[Any]] = (),
) -> Claim:
    """From a row of the reply of claim.lua, which may end after the counts or before what is left to be loaded.

    ``further``: resources of ``others``.
    """
    others = NO_OTHERS
    if further:
        found = (Cached.parse_all(each, ending_of) for each in children[1:]) if children else ([] for _ in further)
        others = dict(zip(further, found, strict=True))
    return Claim(
        queue,
        key.decode(),
        nonce,
        Cached.parse(owner, apart) if owner else None,
        Cached.parse_all(children[0], ending_of) if children and children[0] else [],
        Expectations.parse(expectations) if expectations else None,
        min_rv.decode(),
        unsettled != b"",
        crashes,
        others,
        now_ms,
        why.decode(errors="replace"),
        _counts(counts) if counts else NO_COUNTS,
        tuple([Unloaded(of.decode(), gen.decode(), entry.decode(), each) for of, gen, entry, each in unloaded]),
    )


def _counts(texts: list[bytes]) -> dict[bytes, int]:
    """From "count text" of each class. Some may differ in nothing but whom they wake."""
    found: dict[bytes, int] = {}
    for count, _, text in (each.partition(b" ") for each in texts):
        kind = kind_in(text)
        found[kind] = found.get(kind, 0) + int(count)
    return found


def _delta(version: bytes, full: int, changed: list[bytes], gone: list[bytes]) -> Delta:
    if full == 2:
        return Delta(version.decode(), unread=True)
    objects = zip((each.decode() for each in changed[::2]), Cached.parse_all(changed[1::2]), strict=True)
    return Delta(version.decode(), full == 1, list(objects), [each.decode() for each in gone])
