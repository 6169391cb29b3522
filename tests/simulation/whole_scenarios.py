"""What the runs of a controller that says what is wanted are about, and what each has to bring about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulation.whole_simulation import WholeWeights

USUAL = WholeWeights()
LATE = replace(USUAL, kill=6, keeps_dead_writes=0.9, lose_answer=6, deeds=("set", "drop", "set", "drop", "again"))
SCENARIOS: dict[str, dict[str, Any]] = {
    "usual": {"weights": USUAL},
    "several sites": {"weights": USUAL, "owners": 3},
    "writes of the dead land late": {"weights": LATE},
    "killed while deleting": {"weights": replace(LATE, aimed="delete", kill=30, faulty=0.0)},
    "killed while applying": {"weights": replace(LATE, aimed="apply", kill=30, faulty=0.0)},
    "the cache lags": {"weights": replace(USUAL, lag=0.8)},
    "redis is lost": {"weights": replace(LATE, redis=0.3)},
    "others take names": {"weights": replace(USUAL, deeds=("plant", "set", "drop", "edit", "take"), user=8)},
}
OPPORTUNITIES = {
    "usual": ("created", "deleted", "rests", "precondition refused", "grants cut"),
    "writes of the dead land late": ("late commits", "killed with a write under way"),
    "killed while deleting": ("late commits", "killed with a write under way", "deleted"),
    "redis is lost": ("redis losses",),
    "others take names": ("planted",),
}
