"""From what MONITOR showed to the steps the checker knows. Decoding only: nothing is judged here.

A script's call is followed by what it did, each with "lua" for a client; the next line of another client ends it. What
a call came to is read from what it did: a record that was accepted moved the lease, a finish took the lock away.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from oarlock.chaos.judge.evidence.evidence import (
    UNKNOWN,
    Answered,
    Attached,
    Claimed,
    Dirty,
    EpochBegun,
    LiveList,
    Lost,
    Opened,
    Recorded,
    Refused,
    Renewed,
    Step,
    Unknown,
    Unlocked,
    Watermark,
)

_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|.)")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b"}
_KEY = re.compile(r"oarlock:(\d+):\{[^}]*\}:(.*)")
_EPOCH_KEY = re.compile(r"oarlock:\{[^}]*\}:epoch")
_LOCK = re.compile(r"holder=(\S+) nonce=(\S+)")
_UID = re.compile(r"\buid=(\S+)")
_ANNOUNCED = ("create ", "delete ", "scale ")


@dataclass
class _Call:
    """A script's call, or a plain command: ``name`` "" then."""

    at_s: float
    name: str
    epoch: int
    arguments: list[str]
    steps: list[Step] = field(default_factory=list)
    entries: list[tuple[str, str]] = field(default_factory=list)
    unlocked: list[str] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    looked: bool = False
    """Whether a lock was looked at: the epoch was the right one."""
    passed: bool = False
    """Whether something was done after that look: for a record, its nonce was the right one."""
    leased: list[str] = field(default_factory=list)


def read_trace(lines: Iterable[str]) -> Iterator[Step]:
    """The steps of a recorded trace, in the order of Redis."""
    decoder = _Decoder()
    for line in lines:
        yield from decoder.feed(line)
    yield from decoder.end()


class _Decoder:
    """Line by line; a call is told once the next one begins."""

    def __init__(self) -> None:
        self._call: _Call | None = None
        self._nonces: dict[str, str] = {}
        """Task -> nonce of its last claim."""

    def end(self) -> Iterator[Step]:
        """The call that was open."""
        call, self._call = self._call, None
        return iter(()) if call is None else _steps(call, self._nonces)

    def feed(self, line: str) -> Iterator[Step]:
        if line.startswith("@"):
            yield from self._note(line)
            return
        head, _, rest = line.partition("] ")
        words = [_plain(word) for word in _WORD.findall(rest)]
        if not words:
            return
        at_s = float(head.lstrip("+").split(" ", 1)[0])
        if head.endswith(" lua"):
            if self._call is not None:
                _did(self._call, at_s, words)
            return
        yield from self.end()
        yield from self._begin(at_s, words)

    def _note(self, line: str) -> Iterator[Step]:
        word, at, *more = line.split(maxsplit=2)
        told = more[0].strip() if more else ""
        if word == "@lost":
            self._call = None  # what it had done when the server died, died with it
            yield Lost(float(at), told)
        else:
            yield from self.end()
            epoch, _, phase = told.partition(" ")
            yield Attached(float(at), int(epoch or 0), phase)

    def _begin(self, at_s: float, words: list[str]) -> Iterator[Step]:
        command = words[0].upper()
        if command in ("FLUSHALL", "FLUSHDB", "SWAPDB"):
            yield Lost(at_s, command)
        elif command == "SET" and _EPOCH_KEY.fullmatch(words[1]):
            yield EpochBegun(at_s, int(words[2]))
        elif command == "EVALSHA":
            found = _KEY.fullmatch(words[4]) if len(words) > 4 else None
            if found is not None:
                epoch = int(found[1])
                self._call = _Call(at_s, words[1], epoch, words[5:])
                if words[1] == UNKNOWN:
                    yield Unknown(at_s, epoch)
        else:
            found = _KEY.fullmatch(words[1]) if len(words) > 1 else None
            if found is not None:
                self._call = _Call(at_s, "", int(found[1]), [])
                _did(self._call, at_s, words)


def _plain(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if len(code) == 3 else _PLAIN.get(code, code)


def _did(call: _Call, at_s: float, words: list[str]) -> None:  # noqa: PLR0912  # one case a kind of key
    call.passed = call.looked
    found = _KEY.fullmatch(words[1]) if len(words) > 1 else None
    if found is None:
        return
    epoch, name, command, rest = int(found[1]), found[2], words[0].upper(), words[2:]
    add = call.steps.append
    if name == "phase":
        if command == "SET" and rest[0] == "OPEN":
            add(Opened(at_s, epoch))
        return
    if name == "watermark":
        if command == "HSET":
            for resource, rv in zip(rest[::2], rest[1::2], strict=True):
                add(Watermark(at_s, epoch, resource, int(rv)))
        return
    if name == "leases":
        if command == "ZADD" and rest[0] == "XX":
            call.leased.append(rest[2])
        return
    queue, _, part = name.partition(":")
    if part.startswith("expect:"):
        _did_record(call, at_s, epoch, f"{queue}:{part.removeprefix('expect:')}", command, rest)
    elif part == "locks" and command == "HSET":
        for key, text in zip(rest[::2], rest[1::2], strict=True):
            lock = _LOCK.search(text)
            if lock is not None:
                add(Claimed(at_s, epoch, f"{queue}:{key}", lock[1], lock[2]))
    elif part == "locks" and command == "HDEL":
        call.unlocked += [f"{queue}:{key}" for key in rest]
    elif part == "locks" and command in ("HGET", "HMGET"):
        call.looked = True
    elif part == "state" and command == "HSET":
        for key, state in zip(rest[::2], rest[1::2], strict=True):
            if state.startswith("running+"):
                add(Dirty(at_s, epoch, f"{queue}:{key}"))
    elif (part, command) in (("stream", "XADD"), ("backlog", "ZADD")):
        call.states[f"{queue}:{rest[-1]}"] = "queued"
    elif part in ("delayed", "parked") and command == "ZADD":
        call.states.setdefault(f"{queue}:{rest[-1]}", part)


def _did_record(call: _Call, at_s: float, epoch: int, task: str, command: str, rest: list[str]) -> None:
    if command == "HSET":
        for name, value in zip(rest[::2], rest[1::2], strict=True):
            if value.startswith("pending "):
                uid = _UID.search(value)
                call.entries.append((name, uid[1] if uid else ""))
            elif name.startswith(_ANNOUNCED):
                call.steps.append(Answered(at_s, epoch, task, name))
    elif command == "HDEL":
        call.steps += [Answered(at_s, epoch, task, name) for name in rest if name.startswith(_ANNOUNCED)]
    elif command in ("DEL", "UNLINK"):
        call.steps.append(Answered(at_s, epoch, task, ""))


def _steps(call: _Call, nonces: dict[str, str]) -> Iterator[Step]:
    """What a finished call came to. ``nonces``: of the last claims, which it keeps up."""
    nonces.update((step.task, step.nonce) for step in call.steps if isinstance(step, Claimed))
    yield from call.steps
    at_s, epoch, given = call.at_s, call.epoch, call.arguments
    match call.name:
        case "announce" if len(given) >= 3:
            task, nonce = f"{given[0]}:{given[1]}", given[2]
            if task in call.leased:
                yield Recorded(at_s, epoch, task, nonce, tuple(call.entries))
            elif call.looked and not call.passed:
                yield Refused(at_s, epoch, task, nonce, "announce")
        case "finish":
            yield from _finished(call, nonces)
        case "renew":
            for task in call.leased:
                yield Renewed(at_s, epoch, task, tuple(given[1:]))
        case name:
            holder = given[0] if name == "release" and given else ""
            for task in call.unlocked:
                state = call.states.get(task, "idle")
                yield Unlocked(at_s, epoch, task, name, holder=holder, state=state)


def _finished(call: _Call, nonces: Mapping[str, str]) -> Iterator[Step]:
    at_s, epoch, given = call.at_s, call.epoch, call.arguments
    turns: list[tuple[str, str, list[str]]] = []
    at = 1
    for _ in range(int(given[0])):
        queue, key, nonce = given[at : at + 3]
        changes = int(given[at + 6])
        turns.append((f"{queue}:{key}", nonce, given[at + 7 : at + 7 + 3 * changes : 3]))
        at += 7 + 3 * changes
    often = Counter(task for task, _, _ in turns)
    left = set(call.unlocked)
    for task, nonce, ops in turns:
        # A worker that stood still may end a turn it has lost together with its later one of the same key.
        lost = often[task] > 1 and any(
            (other, of) == (task, nonces.get(task)) and of != nonce for other, of, _ in turns
        )
        if task in left and not lost:
            left.discard(task)
            yield Unlocked(at_s, epoch, task, "finish", nonce=nonce, state=call.states.get(task, "idle"))
            if "settled" in ops:
                yield LiveList(at_s, epoch, task)
        elif call.looked:
            yield Refused(at_s, epoch, task, nonce, "finish")
    for task in left:
        yield Unlocked(at_s, epoch, task, "finish", state=call.states.get(task, "idle"))
