"""The pass over the trace of Redis: who held which key when, what was announced, what each claim had read.

Found here: two holders at once, steps of an earlier holder or epoch that were accepted, unlocks that lost the key,
epochs opened before their drain was over, watermarks that went back.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from oarlock.chaos.judge.evidence.evidence import (
    CUT,
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
    Violation,
    Watermark,
)

CLOCKS_APART_S = 0.02
"""The drain is counted on another clock than Redis's."""


@dataclass(slots=True)
class Hold:
    """A lock from its claim to its end. ``by``: finish, release, reclaim, lost, or "" while it stands."""

    task: str
    holder: str
    nonce: str
    epoch: int
    from_s: float
    to_s: float = math.inf
    by: str = ""
    state: str = ""
    marks: dict[str, int] = field(default_factory=dict)
    """What its claim had read, as in ``View``."""


@dataclass(slots=True)
class Entry:
    """An announced write from its record to its answer. ``requests``: how many were sent in its name.

    ``holds``: of the turns that announced it, the first and those that sent it again.
    """

    task: str
    field: str
    uid: str
    nonce: str
    epoch: int
    recorded_s: float
    ended_s: float = math.inf
    requests: int = 0
    holds: list[Hold] = dataclasses.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class View:
    """What a claim had read: resource -> resourceVersion its cache equalled."""

    at_s: float
    epoch: int
    marks: dict[str, int]


@dataclass
class Fences:
    """Fed step by step in the order of Redis; ``violations`` are complete when the trace is."""

    drain_s: float
    violations: list[Violation] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    holds: list[Hold] = dataclasses.field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    views: dict[str, list[View]] = field(default_factory=lambda: defaultdict(list))
    refused: list[Refused] = field(default_factory=list)
    live_lists: int = 0
    unknown: int = 0
    epochs: list[int] = field(default_factory=list)
    open_spans: list[tuple[float, float]] = field(default_factory=list)
    """From OPEN to the loss of the data."""
    cuts: list[tuple[float, float]] = field(default_factory=list)
    """(last told of, noticed): where the trace broke off. What Redis had answered and not yet told of died with it."""

    def __post_init__(self) -> None:
        self._epoch, self._begun_s, self._open = 0, math.nan, False
        self._locks: dict[str, Hold] = {}
        self._pending: dict[str, dict[str, Entry]] = defaultdict(dict)
        self._dirty: set[str] = set()
        self._marks: dict[str, int] = {}
        self._used: set[tuple[str, str]] = set()
        self._told_s = -math.inf

    def read(self, steps: Iterable[Step]) -> Fences:
        """Read a whole trace."""
        for step in steps:
            self.step(step)
            self._told_s = step.at_s
        return self

    def step(self, step: Step) -> None:  # noqa: PLR0912  # one case a kind of step
        match step:
            case Attached():
                self._attached(step)
            case Lost(at_s, why):
                if why == CUT:
                    self.cuts.append((min(self._told_s, at_s), at_s))
                self._lose(at_s, why)
            case EpochBegun(at_s, epoch):
                if epoch in self.epochs:
                    self._break("overlap", "", at_s, f"epoch {epoch} was begun a second time")
                self._lose(at_s, "another epoch")
                self._begin(epoch, at_s)
            case Opened(at_s, epoch):
                self._opened(at_s, epoch)
            case Watermark(at_s, epoch, resource, rv):
                if self._current(at_s, epoch, "", "a watermark") and rv < self._marks.get(resource, 0):
                    was = self._marks[resource]
                    self._break("watermark_backwards", "", at_s, f"{resource} went from {was} to {rv}", rv)
                self._marks[resource] = rv
            case Claimed():
                self._claimed(step)
            case Recorded():
                self._recorded(step)
            case Answered(at_s, _, task, name):
                self._answered(at_s, task, name)
            case Dirty():
                self._dirty.add(step.task)
            case Unlocked():
                self._unlocked(step)
            case Refused():
                self.refused.append(step)
            case Renewed(at_s, epoch, task, holders):
                lock = self._locks.get(task)
                if lock is not None and self._current(at_s, epoch, task, "a renewal") and lock.holder not in holders:
                    self._break("overlap", task, at_s, f"the lease of {lock.holder} was renewed for {holders}")
            case LiveList():
                self.live_lists += 1
            case Unknown(at_s, epoch):
                if not self.unknown:
                    self.gaps.append(f"a script unknown here was called at {at_s:.3f} in epoch {epoch}")
                self.unknown += 1

    # -- epochs

    def _attached(self, step: Attached) -> None:
        if step.epoch == 0:
            if self._locks:
                self.gaps.append(f"attached at {step.at_s:.3f} to an empty Redis while locks were known")
            return
        if step.epoch == self._epoch:
            self.gaps.append(f"attached at {step.at_s:.3f} in the middle of epoch {step.epoch}")
            return
        if step.epoch in self.epochs:
            return  # came back from a file or a replica after it was lost: no step of it may be accepted again
        if self._epoch or self.epochs:
            # Begun before we could listen; nothing is claimed in a drain, so nothing was missed in one.
            if step.phase == "OPEN":
                self.gaps.append(f"attached at {step.at_s:.3f}, after epoch {step.epoch} was opened")
            self._lose(step.at_s, "another epoch")
        self._begin(step.epoch, math.nan)
        if step.phase == "OPEN":
            self._open = True
            self.open_spans.append((step.at_s, math.inf))

    def _begin(self, epoch: int, at_s: float) -> None:
        self.epochs.append(epoch)
        self._epoch, self._begun_s, self._open = epoch, at_s, False

    def _opened(self, at_s: float, epoch: int) -> None:
        if not self._current(at_s, epoch, "", "an opening"):
            return
        drained_s = at_s - self._begun_s
        if len(self.epochs) > 1 and drained_s < self.drain_s - CLOCKS_APART_S:
            text = f"epoch {epoch} was opened {drained_s:.3f} s after it began; D is {self.drain_s:.3f} s"
            self._break("early_open", "", at_s, text)
        if not self._open:
            self._open = True
            self.open_spans.append((at_s, math.inf))

    def _lose(self, at_s: float, why: str) -> None:
        for hold in self._locks.values():
            hold.to_s, hold.by, hold.state = at_s, "lost", why
        for fields in self._pending.values():
            for entry in fields.values():
                entry.ended_s = at_s
        if self._open:
            self.open_spans[-1] = (self.open_spans[-1][0], at_s)
        self._locks, self._marks, self._dirty = {}, {}, set()
        self._pending.clear()
        self._epoch, self._open = 0, False

    def _current(self, at_s: float, epoch: int, task: str, what: str) -> bool:
        if epoch == self._epoch:
            return True
        now = f"epoch {self._epoch} is the current one" if self._epoch else "the data were lost"
        self._break("overlap", task, at_s, f"{what} of epoch {epoch} was accepted although {now}")
        return False

    # -- locks

    def _claimed(self, step: Claimed) -> None:
        at_s, task = step.at_s, step.task
        if not self._current(at_s, step.epoch, task, "a claim"):
            return
        if not self._open:
            self._break("overlap", task, at_s, f"claimed by {step.holder} before epoch {step.epoch} was opened")
        held = self._locks.get(task)
        if held is not None:
            text = f"claimed by {step.holder} while {held.holder} has held it since {at_s - held.from_s:.3f} s"
            self._break("overlap", task, at_s, text)
            held.to_s, held.by = at_s, "overlapped"
        if (task, step.nonce) in self._used:
            self._break("overlap", task, at_s, f"nonce {step.nonce} was given a second time")
        self._used.add((task, step.nonce))
        self._locks[task] = hold = Hold(task, step.holder, step.nonce, step.epoch, at_s, marks=dict(self._marks))
        self.holds.append(hold)
        self._dirty.discard(task)
        self.views[task].append(View(at_s, step.epoch, hold.marks))

    def _recorded(self, step: Recorded) -> None:
        if not self._current(step.at_s, step.epoch, step.task, "a record"):
            return
        hold = self._fenced(step.at_s, step.task, step.nonce, "announce")
        pending = self._pending[step.task]
        for name, uid in step.entries:
            if name not in pending or pending[name].uid != uid:
                pending[name] = entry = Entry(step.task, name, uid, step.nonce, step.epoch, step.at_s)
                self.entries.append(entry)
            if hold is not None:
                pending[name].holds.append(hold)

    def _fenced(self, at_s: float, task: str, nonce: str, what: str) -> Hold | None:
        lock = self._locks.get(task)
        if lock is None:
            self._break("overlap", task, at_s, f"{what} under nonce {nonce} was accepted though nobody holds the key")
        elif lock.nonce != nonce:
            text = f"{what} under nonce {nonce} was accepted though {lock.holder} holds the key under {lock.nonce}"
            self._break("overlap", task, at_s, text)
        return lock

    def _answered(self, at_s: float, task: str, name: str) -> None:
        pending = self._pending[task]
        for each in [name] if name else list(pending):
            entry = pending.pop(each, None)
            if entry is not None:
                entry.ended_s = at_s

    def _unlocked(self, step: Unlocked) -> None:
        at_s, task, state = step.at_s, step.task, step.state
        if not self._current(at_s, step.epoch, task, f"an unlock ({step.by})"):
            return
        match step.by:
            case "finish":
                lock = self._fenced(at_s, task, step.nonce, "finish")
            case "release" | "reclaim":
                lock = self._locks.get(task)
                if lock is None:
                    self._break("overlap", task, at_s, f"{step.by} took away a lock that did not stand")
                elif step.by == "release" and lock.holder != step.holder:
                    text = f"release of {step.holder} took away the lock of {lock.holder}"
                    self._break("overlap", task, at_s, text)
            case by:
                lock = self._locks.get(task)
                self._break("overlap", task, at_s, f"the lock was taken away by {by or 'a plain command'}")
        self._locks.pop(task, None)
        if lock is not None:
            lock.to_s, lock.by, lock.state = at_s, step.by, state
        self._check_requeued(step)
        self._dirty.discard(task)

    def _check_requeued(self, step: Unlocked) -> None:
        """Every way out of a lock leads to where the key will be looked at again, if there is anything to see."""
        task, state = step.task, step.state
        if step.by == "finish":
            if task in self._dirty and state != "queued":
                self._lost_key(step, "though it had changed meanwhile")
            elif self._pending[task] and state == "idle":
                self._lost_key(step, f"with writes unanswered: {', '.join(self._pending[task])}")
        elif state not in ("queued", "parked"):
            self._lost_key(step, f"by {step.by}, which must give it back")

    def _lost_key(self, step: Unlocked, why: str) -> None:
        self._break("lost_key", step.task, step.at_s, f"unlocked by {step.by} and left {step.state} {why}")

    def _break(self, kind: str, task: str, at_s: float, text: str, rv: int = 0) -> None:
        self.violations.append(Violation(kind, task, at_s, rv, text))

    # -- for the other passes

    def standing(self) -> list[Hold]:
        """Locks that still stand."""
        return list(self._locks.values())

    def pending_with(self, holder: str, at_s: float) -> list[Entry]:
        """Writes announced and unanswered at a moment, of the keys a worker held then."""
        held = {hold.task for hold in self.holds if hold.holder == holder and hold.from_s <= at_s < hold.to_s}
        if not held:
            return []
        return [each for each in self.entries if each.task in held and each.recorded_s <= at_s < each.ended_s]
