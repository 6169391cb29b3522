"""What the runs over Deployments are about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulation.rollout_simulation import RolloutWeights
from tests.simulation.rollout_world import Habits

ROLLS = Habits(deeds=("image",), sizes=(3, 5), min_ready_s=(0,))
SCALES = Habits(deeds=("image", "scale", "scale"))
CHANGES = Habits(deeds=("image", "image", "scale", "limits", "ready"))
PAUSES = Habits(deeds=("image", "image", "scale", "pause"))
LOSES = Habits(deeds=("image", "image", "scale", "delete", "fail"), unreadies=0.1)
RIPENS = Habits(deeds=("image",), sizes=(3, 5), limits=((1, 1), (2, 0), (2, 1)), min_ready_s=(1, 2), unreadies=0.05)
RECREATES = Habits(deeds=("image", "image", "scale", "delete", "fail"), limits=(None,), hangs=0.6)
STRAYS = Habits(deeds=("image", "image", "orphan", "collide", "resize"), images=("a", "b", "c", "d"))
HISTORY = Habits(deeds=("image", "image", "image", "orphan"), images=("a", "b", "c", "d", "e"), history=(0, 1))

ROUGH = RolloutWeights(user=3, kill=3, freeze=2, lose_answer=4, ingestor=2, supervise=8)
"""A bit of everything."""
LATE = replace(ROUGH, kill=6, freeze=0, keeps_dead_writes=0.95, supervise=20, pace_ms=(0, 0, 0, 0, 1, 5, 20))
"""Writes of workers that have died land late."""

SCENARIOS: dict[str, dict[str, Any]] = {
    "usual": {"weights": RolloutWeights()},
    "rolling": {"weights": replace(ROUGH, habits=ROLLS)},
    "scaled": {"weights": replace(ROUGH, habits=SCALES, user=5)},
    "strategies change": {"weights": replace(ROUGH, habits=CHANGES, user=4)},
    "paused": {"weights": replace(ROUGH, habits=PAUSES, user=4)},
    "pods go": {"weights": replace(ROUGH, habits=LOSES)},
    "pods ripen": {"weights": replace(LATE, habits=RIPENS)},
    "recreated": {"weights": replace(ROUGH, habits=RECREATES)},
    "recreated, writes come late": {"weights": replace(LATE, habits=RECREATES)},
    "strays": {"weights": replace(ROUGH, habits=STRAYS, user=4)},
    "history": {"weights": replace(ROUGH, habits=HISTORY, user=4)},
    "two at once": {"weights": replace(ROUGH, habits=CHANGES, user=5), "owners": 2},
    "workers die": {"weights": replace(ROUGH, habits=CHANGES, kill=8, freeze=5, supervise=14, lose_answer=8)},
    "writes come late": {"weights": replace(LATE, habits=CHANGES, user=5)},
    "the cache is late": {"weights": replace(ROUGH, habits=CHANGES, lag=0.8, user=4)},
    "ingestors stumble": {"weights": replace(ROUGH, habits=CHANGES, ingestor=10, ingest=80)},
    "redis is lost": {"weights": replace(ROUGH, habits=CHANGES, redis=0.4, supervise=14, ingest=80)},
    "the server errs": {"weights": replace(ROUGH, habits=CHANGES, faulty=0.3, poor=0.4)},
    "changes are refused": {
        "weights": replace(
            ROUGH, habits=CHANGES, refuses={"patch": 0.4, "create": 0.2}, faulty=0.1, pace_ms=(0, 1, 5, 50, 200, 400)
        )
    },
    "few at once": {"weights": replace(ROUGH, habits=SCALES, user=5), "burst": 1},
}

OPPORTUNITIES: dict[str, tuple[str, ...]] = {
    "usual": ("available pods deleted", "status conflicts"),
    "rolling": ("available pods deleted",),
    "strays": ("already exists", "orphaned"),
    "history": ("replicasets pruned",),
    "two at once": ("turns at once",),
    "workers die": ("killed with a write under way", "late commits", "looks after D"),
    "writes come late": ("late commits", "looks after D"),
    "ingestors stumble": ("old lists",),
    "redis is lost": ("redis losses", "lists needed"),
    "the server errs": ("fault 429", "fault 500", "fault 500 late", "fault 409", "faulty looks"),
    "changes are refused": ("patchs refused", "looks after D"),
}
"""What each is for, and has to bring about."""
