"""What the runs over ReplicaSets are about, and what each has to bring about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulation.simulation import Weights

REFUSING = Weights(kubelet=12, user=3, pace_ms=(0, 1, 5, 20, 100, 400))
"""With ``refuses``: writes of some names are answered with 500 for ever, or for a while."""

WAITING = Weights(
    **{"worker": 60, "land": 4, "arrive": 4, "kill": 3, "supervise": 12, "user": 6, "lose_answer": 4},
    beside=True,
)
"""The server answers late, and workers claim further keys beside the turns that wait."""

FEW = Weights(worker=80, user=6, kill=4, freeze=4, lose_answer=3, supervise=10, kubelet=12, wishes=(0, 2, 5, 9))
"""With a small ``burst``: turns go on beyond what one decision may ask for."""

SCENARIOS: dict[str, dict[str, Any]] = {
    "usual": {},
    "strict": {"strict": True, "weights": Weights(lose_answer=4, kill=3)},
    "answers get lost": {"weights": Weights(lose_answer=8, kill=3, arrive=6, kubelet=12)},
    "workers die": {"weights": Weights(kill=6, freeze=4, supervise=12)},
    "workers stand still": {"weights": Weights(freeze=20, supervise=16)},
    "ingestors stumble": {"weights": Weights(ingestor=10, ingest=30)},
    "redis is lost": {"weights": Weights(redis=1, supervise=12, ingest=20)},
    "names are refused": {"weights": replace(REFUSING, refuses={"create": 0.5})},
    "names are refused to strict owners": {"strict": True, "weights": replace(REFUSING, refuses={"create": 0.5})},
    "deletes are refused": {
        "weights": replace(REFUSING, refuses={"delete": 0.6}, refuses_most=4, wishes=(5, 10), user=4)
    },
    "anything is refused": {"weights": replace(REFUSING, refuses={"create": 0.4, "delete": 0.4}, faulty=0.1)},
    "anything is refused to strict owners": {
        "strict": True,
        "weights": replace(REFUSING, refuses={"create": 0.4, "delete": 0.4}, faulty=0.1, kill=3),
    },
    "people steer": {"weights": Weights(people=8, supervise=14, user=4, kill=2)},
    "people steer and redis is lost": {"weights": Weights(people=6, supervise=14, ingest=20, redis=1)},
    "many owners, a small front": {"owners": 4, "front": 1, "weights": Weights(worker=20, user=8, kill=2, ingestor=2)},
    "turns wait": {"owners": 4, "weights": WAITING},
    "one owner, many workers": {"owners": 1, "workers": 5, "weights": Weights(worker=80, user=4)},
    "few at once": {"burst": 2, "weights": FEW},
    "few at once to strict owners": {"burst": 2, "strict": True, "weights": FEW},
}

OPPORTUNITIES: dict[str, tuple[str, ...]] = {
    "usual": ("already exists", "precondition refused", "turns at once", "counts handed over"),
    "strict": ("already exists", "late commits", "unanswered", "counts handed over"),
    "answers get lost": ("already exists", "unanswered"),
    "workers die": (
        *("already exists", "late commits", "killed with a write under way", "looks after D"),
        "announced, and never sent by the dead",
    ),
    "workers stand still": ("too late to send",),
    "ingestors stumble": ("old lists",),
    "redis is lost": ("redis losses", "lists needed", "late commits"),
    "names are refused": (
        *("creates refused for ever", "looks after D", "passed over"),
        "announced, and never sent by the living",
    ),
    "names are refused to strict owners": ("creates refused for ever", "looks after D"),
    "deletes are refused": ("deletes refused for ever", "obsolete deletes", "looks after D"),
    "anything is refused": ("creates refused for ever", "deletes refused for ever", "obsolete deletes", "fault 409"),
    "anything is refused to strict owners": ("creates refused for ever", "deletes refused", "looks after D"),
    "people steer": (
        *("pause", "park", "resume", "replay", "requeue", "limit", "weigh", "left"),
        "killed with a write under way",
    ),
    "people steer and redis is lost": ("pause", "park", "left", "redis losses"),
    "many owners, a small front": ("waited behind the front", "killed with a write under way"),
    "turns wait": (
        *("claimed beside others", "lone keys", "turns end for a lone key", "turns at once", "already exists"),
        *("late commits", "killed with a write under way", "looks after D"),
    ),
    "one owner, many workers": ("already exists", "status conflicts"),
    "few at once": ("turns that went on", "killed with a write under way", "late commits", "already exists"),
    "few at once to strict owners": ("turns that went on", "killed with a write under way", "late commits"),
}
"""What each scenario is for, and has to bring about."""
