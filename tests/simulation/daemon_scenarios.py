"""What the runs over DaemonSets are about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulation.daemon_cluster import Habits
from tests.simulation.daemon_simulation import DaemonWeights

ROLLS = Habits(deeds=("image", "image", "image", "delete"), strategies=((1, 0), (2, 0), ("50%", 0)), fails=0.02)
SURGES = replace(ROLLS, strategies=((0, 1), (0, 2), (0, "50%")))
CHANGES = replace(
    ROLLS,
    deeds=("image", "image", "strategy", "delete"),
    strategies=((1, 0), (2, 0), (0, 1), (0, "50%"), (None, 0)),
)
NODES = Habits(
    deeds=("image", "image", "delete"),
    places=("anywhere", "blue", "tolerant"),
    changes=("taint", "label", "add", "remove", "beat"),
)
STRAYS = Habits(
    deeds=("orphan", "upstream", "squat", "relabel", "image", "delete", "hang"),
    strategies=((1, 0), (0, 1)),
)
HISTORY = Habits(deeds=("image", "image", "image", "duplicate", "collide", "delete"), limits=(2, 1, 0))
FAILS = Habits(deeds=("image", "delete", "hang"), fails=0.4)
AGAIN = Habits(deeds=("recreate", "image", "delete", "strategy"), strategies=((1, 0), (0, 1)))

HANGS = Habits(
    deeds=("hang", "hang", "delete", "image", "strategy"),
    strategies=((1, 0), (0, 1), (None, 0)),
    fails=0.1,
    hangs=0.95,
)

REFUSED = replace(ROLLS, deeds=("image", "image", "delete", "strategy"), strategies=((1, 0), (3, 0)), fails=0.1)
REFUSED_SURGING = replace(REFUSED, strategies=((0, 1), (0, 3), (2, 2)))
FASTER: dict[str, Any] = {"user": 3, "pace_ms": (0, 0, 1, 1, 5, 20, 50, 200, 400)}
"""So that D passes within a run."""

ROUGH = DaemonWeights(user=3, kill=2, freeze=2, lose_answer=3, ingestor=2, supervise=8)
"""A bit of everything."""

SCENARIOS: dict[str, dict[str, Any]] = {
    "usual": {"weights": replace(ROUGH, kill=1, freeze=1, lose_answer=1)},
    "rolling": {"weights": replace(ROUGH, habits=ROLLS, nodes=0, user=1, kubelet=50), "nodes": 4},
    "surging": {"weights": replace(ROUGH, habits=SURGES, nodes=0, user=1, kubelet=50), "nodes": 4},
    "strategies change": {"weights": replace(ROUGH, habits=CHANGES, user=2), "nodes": 4},
    "nodes come and go": {"weights": replace(ROUGH, habits=NODES, nodes=5), "sets": 2},
    "strays": {"weights": replace(ROUGH, habits=STRAYS)},
    "history": {"weights": replace(ROUGH, habits=HISTORY, collect=2)},
    "pods fail": {"weights": replace(ROUGH, habits=FAILS, kubelet=50)},
    "made again": {"weights": replace(ROUGH, habits=AGAIN, user=4)},
    "workers die": {"weights": replace(ROUGH, habits=CHANGES, kill=7, freeze=4, supervise=14, lose_answer=6)},
    "ingestors stumble": {"weights": replace(ROUGH, habits=NODES, ingestor=10, ingest=80, nodes=6), "sets": 2},
    "redis is lost": {"weights": replace(ROUGH, habits=CHANGES, redis=0.3, supervise=14, ingest=80, nodes=2)},
    "pods hang, redis is lost": {
        "weights": replace(ROUGH, habits=HANGS, redis=0.3, supervise=14, ingest=80, user=10, keeps_dead_writes=0.9)
    },
    "writes come late": {
        "weights": replace(
            ROUGH,
            habits=HANGS,
            **{"user": 20, "kubelet": 120, "kill": 6, "aimed": "create", "keeps_dead_writes": 0.97, "supervise": 20},
            pace_ms=(0, 0, 0, 0, 0, 1, 5, 10),
        ),
        "nodes": 4,
    },
    "the server errs": {"weights": replace(ROUGH, habits=CHANGES, faulty=0.3, poor=0.4)},
    "creates are refused": {
        "weights": replace(ROUGH, habits=REFUSED, refuses={"create": 0.6}, nodes=0, kubelet=60, **FASTER),
        "nodes": 5,
    },
    "deletes are refused": {
        "weights": replace(ROUGH, habits=REFUSED, refuses={"delete": 0.4}, nodes=0, kubelet=60, **FASTER),
        "nodes": 5,
    },
    "anything is refused": {
        "weights": replace(ROUGH, habits=REFUSED, refuses={"create": 0.3, "delete": 0.3}, faulty=0.1),
        "nodes": 5,
    },
    "anything is refused, surging": {
        "weights": replace(ROUGH, habits=REFUSED_SURGING, refuses={"create": 0.3, "delete": 0.3}, nodes=0, **FASTER),
        "nodes": 5,
    },
    "no assumptions": {
        "weights": replace(ROUGH, habits=CHANGES, redis=0.3, supervise=14, ingest=80, keeps_dead_writes=0.6, kill=6),
        "residue_ms": 600_000,
        "drain": False,
        "rolls": False,
    },
    "two fleets": {"weights": replace(ROUGH, habits=CHANGES, nodes=2), "second": True},
    "few at once": {"weights": replace(ROUGH, habits=NODES, nodes=5, user=4), "nodes": 6, "burst": 1},
    "few at once, surging": {
        "weights": replace(ROUGH, habits=SURGES, nodes=2, kubelet=50, kill=4, supervise=14),
        "nodes": 6,
        "burst": 1,
    },
}
"""By what they are about; ``second`` puts another fleet beside the first. With a small ``burst`` turns go on beyond
what one decision may ask for.
"""

OPPORTUNITIES: dict[str, tuple[str, ...]] = {
    "usual": ("precondition refused", "status conflicts"),
    "rolling": ("available pods deleted",),
    "surging": ("borne after a rest",),
    "strategies change": ("available pods deleted",),
    "nodes come and go": ("turns at once",),
    "history": ("already exists",),
    "pods fail": ("failed again", "borne after a rest"),
    "made again": ("already exists",),
    "workers die": ("killed with a write under way", "late commits", "looks after D"),
    "ingestors stumble": ("old lists",),
    "redis is lost": ("redis losses", "lists needed"),
    "pods hang, redis is lost": ("redis losses",),
    "writes come late": ("late commits",),
    "the server errs": ("fault 429", "fault 500", "fault 500 late", "fault 409", "faulty looks"),
    "creates are refused": ("creates refused for ever", "looks after D", "passed over"),
    "deletes are refused": ("deletes refused for ever", "looks after D"),
    "anything is refused": ("creates refused for ever", "deletes refused"),
    "anything is refused, surging": ("creates refused", "deletes refused", "looks after D"),
    "no assumptions": ("redis losses", "late commits"),
    "two fleets": ("already exists",),
    "few at once": ("turns that went on", "killed with a write under way"),
    "few at once, surging": ("turns that went on", "killed with a write under way", "looks after D"),
}
"""What each is for, and has to bring about."""
