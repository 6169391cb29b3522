"""What is kept of a scenario that ended with a difference, and what is said in the end."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.differential.play import Outcome

_SHOWN_MAX = 20
_WIDTH_MAX = 240


def write_evidence(folder: Path, seed: int, outcome: Outcome) -> Path:
    """A readable report and both snapshots."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"scenario-{outcome.number}.txt"
    lines = [f"seed {seed}, scenario {outcome.number}: replay with --seed {seed} --only {outcome.number}", ""]
    for index, step in enumerate(outcome.steps[: outcome.done + 1]):
        lines.append(f"{'>' if index == outcome.done else ' '} {index:3} {step}")
    lines += ["", *([outcome.trouble] if outcome.trouble else []), *map(str, outcome.differences)]
    path.write_text("\n".join(lines) + "\n")
    for side, taken in outcome.snapshots.items():
        (folder / f"scenario-{outcome.number}-{side}.json").write_text(json.dumps(taken, indent=1, sort_keys=True))
    return path


def keep_logs(sides: Path, evidence: Path, outcomes: Sequence[Outcome]) -> None:
    """The logs of both sides, if anything was found."""
    if all(each.good for each in outcomes):
        return
    for log in sides.rglob("*.log"):
        kept = evidence / "logs" / log.relative_to(sides)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, kept)


def conclude(asked: Mapping[str, Any], outcomes: Sequence[Outcome], evidence: Path, took_s: float) -> int:
    """Print the summary and the JSON line, which begins with what was `asked`. The exit code."""
    bad = [each for each in outcomes if not each.good]
    for each in bad[:_SHOWN_MAX]:
        print(f"scenario {each.number}, after step {each.done} ({each.steps[each.done].what}):")
        for line in [each.trouble] if each.trouble else each.differences[:3]:
            print(f"    {str(line)[:_WIDTH_MAX]}")
    if bad:
        print(f"evidence in {evidence}")
    explained = sum((each.explained for each in outcomes), Counter[str]())
    said = {
        **asked,
        "scenarios": len(outcomes),
        "steps_played": sum(each.done for each in outcomes),
        "compared": sum(each.compared for each in outcomes),
        "explained": dict(sorted(explained.items())),
        "unexplained": sum(len(each.differences) for each in outcomes),
        "restless": sum(bool(each.trouble) for each in outcomes),
        "bad_scenarios": [each.number for each in bad],
        "seconds": round(took_s, 1),
    }
    print(json.dumps(said))
    return 1 if bad or len(outcomes) < asked["asked"] else 0
