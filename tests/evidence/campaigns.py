"""The campaigns of docs/evidence.md: the command of each, what it is to come to in all, and which one comes next.

The list is mixed: the campaign whose goal is the furthest away, in proportion, comes next. So wherever the play is
stopped, every kind of fault has had its share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oarlock.chaos.faults.episodes import EPISODES
from oarlock.chaos.faults.points import POINTS

WANTED = {
    "worker_kills": 10_000,
    "supervisor_kills": 1_000,
    "ingestor_kills": 1_000,
    "pauses": 1_000,
    "redis_losses": 750,
}
"""Fault -> how many of it are to be played in all."""
POINT_KILLS = WANTED["worker_kills"] // len(POINTS)
LOSSES = ("flushall", "redis", "lost-tail", "sentinel", "old-master")
"""The kinds of losses of Redis."""
EACH_LOSS = WANTED["redis_losses"] // len(LOSSES)
CHURN_H = 24
ALONE = {
    **{name: ("--only", name, "--duration", "45") for name in EPISODES if name not in LOSSES},
    "second fleet": ("--faults", "60", "--second-fleet"),
    "shards": ("--shards", "3", "--faults", "40"),
}
"""What is played once a commit -> its options."""

Line = Mapping[str, Any]
TIGHT = {
    "OARLOCK_LEASE_MS": "2000",
    "OARLOCK_RENEW_EVERY_MS": "600",
    "OARLOCK_REQUEST_TIMEOUT_MS": "500",
    "OARLOCK_SEND_MARGIN_MS": "300",
}
"""With D = 4 s a loss of Redis or a pause takes little time."""


@dataclass(frozen=True)
class Campaign:
    """``words``: options of `oarlock chaos`, under these ``settings``. ``come``: of the lines, which part of its goal
    has been reached; 1 and more: all of it. ``part``: the part that one campaign brings.
    """

    kind: str
    words: tuple[str, ...]
    come: Callable[[Sequence[Line]], float]
    part: float
    settings: Mapping[str, str] = field(default_factory=dict)


def total(lines: Sequence[Line], fault: str) -> int:
    """How many of a fault were played."""
    return sum(line.get(fault, 0) for line in lines)


def at_point(lines: Sequence[Line], point: str) -> int:
    return sum(line.get("points", {}).get(point, 0) for line in lines)


def lost(lines: Sequence[Line], loss: str) -> int:
    return sum(line.get("losses", {}).get(loss, 0) for line in lines)


def churn_h(lines: Sequence[Line]) -> float:
    """Simulated hours."""
    return sum(line.get("churn_h", 0.0) for line in lines)


def _losses(kind: str, each: int, *words: str) -> Campaign:
    return Campaign(kind, words, lambda lines: lost(lines, kind) / EACH_LOSS, each / EACH_LOSS, TIGHT)


CAMPAIGNS = (
    Campaign(
        "points",
        ("--mix", "points", "--faults", "500", "--workers", "8"),
        lambda lines: min(at_point(lines, point) for point in POINTS) / POINT_KILLS,
        500 / WANTED["worker_kills"],
    ),
    Campaign(
        "hosts",
        ("--mix", "hosts", "--faults", "120", "--workers", "8", "--ingestors", "1"),
        lambda lines: min(
            total(lines, fault) / WANTED[fault] for fault in ("supervisor_kills", "ingestor_kills", "pauses")
        ),
        40 / WANTED["pauses"],
        TIGHT,
    ),
    Campaign(
        "losses",
        ("--mix", "losses", "--faults", "20"),
        lambda lines: min(lost(lines, loss) for loss in ("flushall", "redis")) / EACH_LOSS,
        10 / EACH_LOSS,
        TIGHT,
    ),
    _losses("lost-tail", 12, "--only", "lost-tail", "--faults", "12", "--duration", "90"),
    _losses("sentinel", 9, "--only", "sentinel", "--faults", "9", "--duration", "90"),
    _losses("old-master", 8, "--only", "old-master", "--faults", "8", "--duration", "100"),
    Campaign("simulation", (), lambda lines: churn_h(lines) / CHURN_H, 3 / CHURN_H),
)


def campaigns(alone: Sequence[str]) -> list[Campaign]:
    """All that may come. ``alone``: what of ``ALONE`` has been played on this commit, or is being played."""
    left = [name for name in ALONE if name not in alone]
    come = 1 - len(left) / len(ALONE)
    return [*CAMPAIGNS, *(Campaign(name, ALONE[name], lambda lines: come, 0.0) for name in left)]


def following(lines: Sequence[Line], running: Sequence[str], commit: str, only: str = "") -> Campaign | None:
    """The campaign that comes next; None: all goals are reached, or will be by those that are ``running`` (kinds).

    ``only``: one whose kind has this text in its name.
    """
    good = [line for line in lines if line["verdict"] == "pass"]
    alone = [line["kind"] for line in good if line["commit"] == commit] + list(running)
    come = [
        (each.come(good) + each.part * running.count(each.kind), each) for each in campaigns(alone) if only in each.kind
    ]
    reached, chosen = min(come, key=lambda each: each[0], default=(1.0, None))
    return chosen if reached < 1 else None
