"""Reads what a claim left to be loaded, with plain commands: children of its keys, and objects of local caches.

A script has to take each value into Lua and out of it again, which is most of the time of such a call, and nothing else
runs meanwhile. Plain commands may be many small ones. So others come in between, and what was read is judged by what is
read last: if generation and epoch are still those of the claim, nothing had been swept. Each object may be newer than
the claim, by itself. An id that the claim saw and that is not there any more has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from oarlock.broker.keys import Keys
from oarlock.broker.values.claims import Batch, Claim, Unloaded
from oarlock.broker.values.objects import Cached, Delta

MIRROR = "mirror"
"""Index entry of an object that its readers keep in memory."""
CHUNK = 500
"""Objects that one command reads: that keeps Redis for a tenth of a millisecond."""


AskAll = Callable[[list[tuple[str | bytes, ...]]], list[Any]]
"""Sends commands together and returns their answers. Raises EpochOver where the epoch is over after them."""


class Changed(Exception):
    """An object, or its class, was changed between the commands, so that it cannot be put together."""


def load(batch: Batch, keys: Keys, ask_all: AskAll, look: Callable[[Unloaded], list[Cached]], memo: LoadMemo) -> Batch:
    """The batch with all children. What was changed meanwhile is read once more; ``look`` reads it, in one step and so
    in a long one, where it was changed again.

    Raises what ``ask_all`` raises, and ValueError, TypeError or IndexError for what no script of ours wrote.
    """
    unloaded = [each for claim in batch.claims for each in claim.unloaded]
    if not unloaded:
        return batch
    found = _asked(unloaded, keys, ask_all, memo)
    if changed := [at for at, children in enumerate(found) if children is None]:
        again = _asked([unloaded[at] for at in changed], keys, ask_all, memo)
        for at, children in zip(changed, again, strict=True):
            found[at] = children
    each = zip(unloaded, found, strict=True)
    return with_children(batch, [look(left) if children is None else children for left, children in each])


def _asked(unloaded: Sequence[Unloaded], keys: Keys, ask_all: AskAll, memo: LoadMemo) -> list[list[Cached] | None]:
    """For each its children; None where they were changed meanwhile. Raises as ``load`` does."""
    resources = list(dict.fromkeys(each.resource for each in unloaded))
    commands: list[tuple[str | bytes, ...]] = []
    for each in unloaded:
        objects = keys.objects(each.resource, each.generation)
        commands += (("HMGET", objects, *each.ids[at : at + CHUNK]) for at in range(0, len(each.ids), CHUNK))
        commands.append(("HGETALL", keys.summary(each.resource, each.generation, each.entry)))
    *answers, gens = ask_all([*commands, ("HMGET", keys.of("generation"), *resources)])
    current = {resource: (gen or b"0").decode() for resource, gen in zip(resources, gens, strict=True)}
    rest = iter(answers)
    return [_read(each, rest, current[each.resource], memo) for each in unloaded]


def _read(unloaded: Unloaded, answers: Iterator[Any], generation: str, memo: LoadMemo) -> list[Cached] | None:
    """The children of one claim, from its part of the answers. None: they were changed meanwhile."""
    chunks = [next(answers) for _ in range(0, len(unloaded.ids), CHUNK)]
    flat = next(answers)
    texts = dict(zip(flat[::2], flat[1::2], strict=True))
    if generation == unloaded.generation:
        try:
            return memo.parse(unloaded.entry, chunks, Endings(unloaded.entry.encode(), texts))
        except Changed:
            pass
    return None


def load_mirrors(batch: Batch, keys: Keys, ask_all: AskAll) -> Batch:
    """The batch with local caches that were too large for the claim. Raises what ``load`` does."""
    unread = {resource: delta for resource, delta in batch.local_caches.items() if delta.unread}
    if not unread:
        return batch
    read = {resource: _mirror(resource, delta.version, keys, ask_all) for resource, delta in unread.items()}
    return replace(batch, local_caches={**batch.local_caches, **read})


def local_cache(resource: str, keys: Keys, ask_all: AskAll) -> Delta:
    """All mirrored objects of a resource; nothing is known of one that was never listed. Raises what ``load`` does.

    The version is read first: what changes meanwhile comes again with the next claim.
    """
    listed, gen = ask_all([("HGET", keys.of("watermark"), resource), ("HGET", keys.of("generation"), resource)])
    if listed is None:
        return Delta("")
    generation = (gen or b"0").decode()
    (seq,) = ask_all([("HGET", keys.changes_at(resource, generation), "seq")])
    return _mirror(resource, f"{generation}:{(seq or b'0').decode()}", keys, ask_all)


def _mirror(resource: str, version: str, keys: Keys, ask_all: AskAll) -> Delta:
    """All objects of a local cache. What changes from ``version`` on comes with the next claim, too. If a list was
    committed meanwhile, nothing is known.
    """
    generation = version.rpartition(":")[0]
    (ids,) = ask_all([("HKEYS", keys.index(resource, generation, MIRROR))])
    objects = keys.objects(resource, generation)
    chunks = [("HMGET", objects, *ids[at : at + CHUNK]) for at in range(0, len(ids), CHUNK)]
    *found, gen = ask_all([*chunks, ("HGET", keys.of("generation"), resource)])
    if (gen or b"0").decode() != generation:
        return Delta("")
    values = zip(ids, (value for chunk in found for value in chunk), strict=True)
    mirrored = [(each.decode(), Cached.parse(value)) for each, value in values if value and _is_mirrored(value)]
    return Delta(version, True, mirrored)


def _is_mirrored(value: bytes) -> bool:
    return MIRROR.encode() in value.split(b"\n", 2)[1].split(b" ")


class Endings(dict[bytes, "bytes | None"]):
    """By the line with its index entries: what ends the blob of an object under ``entry``, before its uid.

    ``texts``: of the classes under that entry, each with a count. Raises Changed where that does not tell it, and
    ValueError for a text that no script wrote.
    """

    def __init__(self, entry: bytes, texts: Mapping[bytes, bytes]) -> None:
        super().__init__()
        self._beginning = entry + b" "
        self.of_classes = {name: _ending(text) for name, text in texts.items()}

    def __missing__(self, line: bytes) -> bytes | None:
        _, classed, name = line.partition(b" #")
        if not classed:
            return None
        if name not in self.of_classes or not line.startswith(self._beginning):
            raise Changed
        ending = self[line] = self.of_classes[name]
        return ending


def _ending(text: bytes) -> bytes | None:
    count, _, kind = text.partition(b" ")
    if not count.isdigit() or kind[:1] not in (b"+", b"-"):
        raise ValueError("text of a class")
    _, more, ending = kind.partition(b"\n")
    return ending if more else None


class LoadMemo:
    """What was loaded last of each owner: most of it is the same the next time, and need not be taken apart again.

    A value and what ends it determine the object, so the memo can never be out of date. It has ``most`` objects, each
    of 0.6 kB beside its blob; the owners that were not loaded for longest are forgotten first. Of an owner that has
    more itself nothing is kept, and its values are let go while it is taken apart: they take as much as its objects.
    """

    def __init__(self, most: int = 5_120) -> None:
        self._most = most
        self._owners: dict[str, tuple[dict[bytes, bytes | None], dict[bytes, Cached]]] = {}

    def __len__(self) -> int:
        return sum(len(objects) for _, objects in self._owners.values())

    def parse(self, entry: str, chunks: Sequence[list[bytes | None]], endings: Endings) -> list[Cached]:
        """The objects of these values, under an index entry; None: it has gone. Takes the values out of the chunks.

        Raises as ``endings`` and ``Cached.parse_all`` do.
        """
        of_classes, before = self._owners.pop(entry, ({}, {}))
        if sum(map(len, chunks)) > self._most:
            return [each for chunk in chunks for each in Cached.parse_all(_taken(chunk), endings.__getitem__)]
        values = [value for chunk in chunks for value in _taken(chunk)]
        if any(endings.of_classes.get(name, ending) != ending for name, ending in of_classes.items()):
            before = {}
        found = {value: before.get(value) for value in values}
        if len(found) < len(values):  # nobody but a stranger writes an object twice: let the reader see it
            return Cached.parse_all(values, endings.__getitem__)
        fresh = [value for value, cached in found.items() if cached is None]
        found.update(zip(fresh, Cached.parse_all(fresh, endings.__getitem__), strict=True))
        objects: dict[bytes, Cached] = found  # type: ignore[assignment]
        self._owners[entry] = endings.of_classes, objects
        while len(self) > self._most:
            del self._owners[next(iter(self._owners))]
        return list(objects.values())


def _taken(chunk: list[bytes | None]) -> list[bytes]:
    values = [value for value in chunk if value is not None]
    chunk.clear()
    return values


def with_children(batch: Batch, found: Iterable[list[Cached]]) -> Batch:
    """The batch with what was found of each that was left to be loaded, in their order."""
    rest = iter(found)
    return replace(batch, claims=[_complete(claim, rest) if claim.unloaded else claim for claim in batch.claims])


def _complete(claim: Claim, found: Iterator[list[Cached]]) -> Claim:
    children, others = claim.children, dict(claim.others)
    for each in claim.unloaded:
        mine = next(found)
        if each.resource in others:
            others[each.resource] = [*mine, *others[each.resource]]
        else:
            children = [*mine, *children]
    return claim._replace(children=children, others=others or claim.others, unloaded=())
