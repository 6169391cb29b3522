"""Rows of a look, from what Redis answered. Pure. An answer that is missing (None) gives no rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from oarlock.broker.budget import BudgetView, view_of
from oarlock.broker.looks.hearing import Hearing, hearing_of
from oarlock.broker.looks.history import Queued, Triggers, past_turns
from oarlock.broker.looks.views import LockView, backlog_keys, lock_view, queued_keys
from oarlock.broker.pauses import Pause, limit_over, scopes_over
from oarlock.cli.watch.fleet_look import KeyLook, TroubleLook, WorkerLook

Task = tuple[str, str]
"""Queue and key."""


@dataclass(frozen=True, slots=True)
class QueueLists:
    """The lists of a queue, cut to their limits: queued keys with the ms they were added, delayed and parked ones with
    their times, failing ones with their counts, and a sample of the keys that are not idle, of which there are
    ``total``.
    """

    queued: dict[str, int]
    delayed: dict[str, int]
    parked: dict[str, int]
    failing: dict[str, int]
    sample: Mapping[str, Triggers | None]
    total: int
    held: Sequence[str] = ()
    """Some keys that a pause holds."""

    @classmethod
    def of(cls, answers: Sequence[Any], now_ms: int) -> QueueLists:
        """From the answers to the eight commands that ask for them."""
        stream, backlog, delayed, parked, failing, sample, total, held = answers
        return cls(
            queued_keys(stream or ()) | backlog_keys(backlog or (), now_ms),
            numbers(delayed),
            numbers(parked),
            numbers(failing),
            {key: _triggers(words) for key, words in _texts(sample).items()},
            total or 0,
            sorted(text(each) for each in held or ()),
        )

    @property
    def trouble(self) -> list[str]:
        """The keys that are parked or failing."""
        return [*self.parked, *(key for key in self.failing if key not in self.parked)]


class Kept(NamedTuple):
    """What is kept of the keys of a queue: the states of the queued and the held, the locks of those in work, and of
    those in trouble the crashes, the newest turns and the times they are delayed to. Each in the order of its keys.
    """

    states: Sequence[bytes | None]
    locks: Sequence[bytes | None]
    crashes: Sequence[bytes | None]
    turns: Sequence[bytes | None]
    delays: Sequence[bytes | None]
    held: Sequence[bytes | None] = ()


def locked_keys(leases: Any) -> dict[str, dict[str, int]]:
    """Queue -> key -> when its lease ends, from the set of leases."""
    found: dict[str, dict[str, int]] = {}
    for task, end_ms in numbers(leases).items():
        queue, _, key = task.partition(":")
        found.setdefault(queue, {})[key] = end_ms
    return found


def lock_views(
    leases: Mapping[str, Mapping[str, int]], locks: Mapping[str, Sequence[bytes | None]], now_ms: int
) -> list[LockView]:
    """The locks of these keys, without those that ended meanwhile."""
    return [
        lock_view(queue, key, lock, end_ms, now_ms)
        for queue, ends in leases.items()
        for (key, end_ms), lock in zip(ends.items(), locks.get(queue, ()), strict=False)
        if lock
    ]


def locked_row(shard: str, lock: LockView, now_ms: int) -> KeyLook:
    """A key in work. Its age counts from the event that queued it, as that of a queued key does."""
    if lock.why is None:
        return KeyLook(shard, lock.queue, lock.key, "running", lock.age_ms)
    age_ms = max(lock.age_ms, now_ms - lock.why.since_ms)
    return KeyLook(shard, lock.queue, lock.key, "running", age_ms, None, lock.why.triggers)


def waiting_rows(
    shard: str, queue: str, lists: QueueLists, states: Sequence[bytes | None], now_ms: int
) -> list[KeyLook]:
    """The queued keys, then the delayed ones. A queued key that was claimed meanwhile is left out."""
    found = []
    for (key, added_ms), state in zip(lists.queued.items(), states, strict=False):
        word, _, why = text(state).partition(" ")
        if word == "queued":
            queued = Queued.parse(why)
            since_ms = added_ms if queued is None else queued.since_ms
            triggers = None if queued is None else queued.triggers
            found.append(KeyLook(shard, queue, key, word, max(0, now_ms - since_ms), None, triggers))
    return found + [KeyLook(shard, queue, key, "delayed", None, at - now_ms) for key, at in lists.delayed.items()]


def held_rows(
    shard: str, queue: str, keys: Sequence[str], states: Sequence[bytes | None], pauses: Sequence[Pause], now_ms: int
) -> list[KeyLook]:
    """The keys that a pause or a limit holds, with the narrowest one over each. One that was brought back meanwhile is
    left out. People have parked a key whose own pause has an end.
    """
    found, over = [], {pause.scope: pause for pause in pauses}
    for key, state in zip(keys, states, strict=False):
        word, _, why = text(state).partition(" ")
        if word != "held":
            continue
        scopes = (*reversed(scopes_over(queue, key)), limit_over(key))
        queued, pause = Queued.parse(why), next((over[scope] for scope in scopes if scope in over), None)
        found.append(
            KeyLook(
                shard,
                queue,
                key,
                "parked" if pause is not None and pause.parked else "held",
                None if queued is None else max(0, now_ms - queued.since_ms),
                None if pause is None or pause.until_ms is None else pause.until_ms - now_ms,
                None if queued is None else queued.triggers,
                "its pause has ended" if pause is None else _in_words(pause),
                None if pause is None else max(0, now_ms - pause.since_ms),
            )
        )
    return found


def _in_words(pause: Pause) -> str:
    return f"{pause.scope}, by {pause.by or 'somebody'}{pause.reason and f': {pause.reason}'}"


def oldest_first(keys: Sequence[KeyLook], most: int) -> tuple[KeyLook, ...]:
    """The oldest keys of all, then the delayed ones, the next ones first, then the held ones, of which at most a tenth
    of all are shown. Of the same age they keep their order.
    """
    held = [each for each in keys if each.paused][: most // 10]
    rest = [each for each in keys if not each.paused]
    rest.sort(key=lambda each: (each.age_ms is None, -(each.age_ms or 0), each.due_in_ms or 0))
    return (*rest[: most - len(held)], *held)


def worker_rows(
    shard: str, holders: Any, waiters: Any, locks: Sequence[LockView], writes: Mapping[Task, int], now_ms: int
) -> list[WorkerLook]:
    """Each worker that is registered, or holds a key all the same, by name."""
    registered = {name: _facts(told) for name, told in _texts(holders).items()}
    supervisors = {name: facts.get("supervisor", "") for name, facts in registered.items()}
    idle = {name for name, until_ms in numbers(waiters).items() if until_ms >= now_ms}
    held: dict[str, list[LockView]] = {}
    for lock in locks:
        held.setdefault(lock.holder, []).append(lock)
    found = []
    for name in sorted({*supervisors, *held}):
        supervisor, up_ms = supervisors.get(name, ""), _up_ms(registered.get(name, {}), now_ms)
        if name not in held:
            found.append(WorkerLook(shard, name, supervisor, "idle" if name in idle else "between", up_ms=up_ms))
        for lock in sorted(held.get(name, ()), key=lambda each: (-each.age_ms, each.queue, each.key)):
            about = (lock.queue, lock.key)
            why = None if lock.why is None else lock.why.triggers
            found.append(
                WorkerLook(
                    shard,
                    name,
                    supervisor,
                    "working",
                    *about,
                    lock.age_ms,
                    lock.remaining_ms,
                    writes.get(about),
                    why,
                    up_ms,
                )
            )
    return found


def trouble_rows(shard: str, queue: str, lists: QueueLists, kept: Kept, now_ms: int) -> list[TroubleLook]:
    """The parked keys, then the failing ones: those that failed most often in a row come first."""
    found = []
    for key, crashes, newest, delay in zip(
        lists.trouble, *(_padded(each, len(lists.trouble)) for each in kept[2:5]), strict=True
    ):
        turns = past_turns(text(newest), "", key)
        at_ms = lists.parked.get(key, None if delay is None else int(float(delay)))
        found.append(
            TroubleLook(
                shard,
                queue,
                key,
                "parked" if key in lists.parked else "failing",
                lists.failing.get(key, 0),
                int(crashes or 0),
                None if at_ms is None else at_ms - now_ms,
                turns[0].did if turns else "",
                max(0, now_ms - turns[0].ended_ms) if turns else None,
            )
        )
    return found


def worst_first(trouble: Sequence[TroubleLook]) -> tuple[TroubleLook, ...]:
    """The parked keys, those that crash most first; then the failing ones, those that failed most often first."""
    return tuple(
        sorted(
            trouble,
            key=lambda each: (each.state != "parked", -each.crashes, -each.failures, each.shard, each.queue, each.key),
        )
    )


def hearings(ingestors: Any, now_ms: int) -> tuple[Hearing, ...]:
    """What each ingestor says it hears, by its name."""
    return tuple(hearing_of(name, words, now_ms) for name, words in sorted(_texts(ingestors).items()))


def pauses(flat: Any) -> tuple[Pause, ...]:
    """What people have paused, the longest first."""
    found = [Pause.parse(scope, told) for scope, told in _texts(flat).items()]
    return tuple(sorted(found, key=lambda each: (each.since_ms, each.scope)))


def budget(kept: Any, shares: Any, now_ms: int) -> BudgetView | None:
    """The API budget; None where there is none."""
    return view_of(_texts(kept), _texts(shares), now_ms)


def writes_in(expectations: Any) -> int:
    """How many writes of an expectation hash were announced and have no answer."""
    return sum(1 for value in (expectations or ())[1::2] if value.startswith(b"pending "))


def text(value: bytes | None) -> str:
    """As text; "" for what is missing."""
    return "" if value is None else value.decode(errors="replace")


def listed(answer: Any) -> Sequence[bytes | None]:
    """A list, also of what could not be read."""
    return answer if isinstance(answer, list) else []


def numbers(flat: Any) -> dict[str, int]:
    """Name -> number, from names and numbers in turn."""
    return {name: int(float(value)) for name, value in _texts(flat).items()}


def _texts(flat: Any) -> dict[str, str]:
    pairs = flat or ()
    return {text(name): text(value) for name, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _triggers(state: str) -> Triggers | None:
    """What queued a key, from its state as stored."""
    queued = Queued.parse(state.partition(" ")[2])
    return None if queued is None else queued.triggers


def _facts(words: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words.split() if "=" in word)


def _up_ms(facts: Mapping[str, str], now_ms: int) -> int | None:
    since = facts.get("since_ms", "")
    return max(0, now_ms - int(since)) if since.isascii() and since.isdigit() else None


def _padded(answers: Sequence[bytes | None], length: int) -> Sequence[bytes | None]:
    return answers if len(answers) == length else [None] * length
