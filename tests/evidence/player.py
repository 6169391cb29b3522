"""Plays campaigns, several side by side, until all goals are reached or one has failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.evidence.campaigns import Campaign, Line, following
from tests.evidence.played import line_of, line_of_simulation, next_seed

FIRST_SEED = 1_001
SIMULATED_SEEDS = 200
NOTHING_IN_A_ROW_MAX = 3
"""So many campaigns of a kind may give no evidence one after the other: then the machine is too busy for them."""


class CannotPlay(Exception):
    """A campaign could not be carried out; one line."""


class Player:
    """``play``: until so many ``slices`` were played. ``lines``: what has been played, which it adds to.

    ``keep`` is told of each line. ``carry_out``: plays one; ``tell``: progress.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        commit: str,
        keep: Callable[[Line], None],
        tell: Callable[[str], None],
        carry_out: Callable[[Campaign, int, str], Line],
    ) -> None:
        self._lines, self._commit, self._keep, self._tell = list(lines), commit, keep, tell
        self._carry_out = carry_out
        self._seed = next_seed(lines, FIRST_SEED)
        self._nothing: Counter[str] = Counter()

    def play(self, slices: int, jobs: int, only: str = "") -> bool:
        """Whether none has failed. A failure lets those that run come to their ends, and begins no other."""
        running: dict[Future[Line], str] = {}
        good = True
        with ThreadPoolExecutor(jobs) as pool:
            while True:
                while good and slices and len(running) < jobs:
                    campaign = following(self._lines, list(running.values()), self._commit, only)
                    if campaign is None:
                        break
                    slices -= 1
                    running[pool.submit(self._carry_out, campaign, self._take_seed(campaign), self._commit)] = (
                        campaign.kind
                    )
                if not running:
                    return good
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    good = self._ended(running.pop(ended), ended) and good

    def _take_seed(self, campaign: Campaign) -> int:
        seed, self._seed = self._seed, self._seed + (SIMULATED_SEEDS if campaign.kind == "simulation" else 1)
        return seed

    def _ended(self, kind: str, ended: Future[Line]) -> bool:
        """Keep what it came to. Whether to go on."""
        try:
            line = ended.result()
        except CannotPlay as error:
            self._tell(f"{kind}: {error}")
            return False
        lasting = {name: value for name, value in line.items() if name != "state_dir"}  # that is of this machine alone
        self._lines.append(lasting)
        self._keep(lasting)
        kept = f", evidence in {line['state_dir']}" if "state_dir" in line else ""
        self._tell(f"{kind}, seed {line['seed']}: {line['verdict']}, {line['violations']} violations{kept}")
        self._nothing[kind] = self._nothing[kind] + 1 if line["verdict"] == "no evidence" else 0
        return line["verdict"] != "fail" and self._nothing[kind] < NOTHING_IN_A_ROW_MAX


def carry_out(campaign: Campaign, seed: int, commit: str) -> Line:
    """Play one in a process of its own. Raises CannotPlay."""
    if campaign.kind == "simulation":
        return _simulate(seed, commit)
    told = play_chaos((*campaign.words, "--seed", str(seed)), campaign.settings)
    line = line_of(told, commit, campaign.kind)
    return line if told["verdict"] == "pass" else {**line, "state_dir": told["state_dir"], "first": told["first"]}


def play_chaos(words: Sequence[str], settings: Any) -> dict[str, Any]:
    """The JSON that `oarlock chaos` ends with. Raises CannotPlay without one."""
    command = [sys.executable, "-m", "oarlock.cli", "chaos", *words, "-o", "json"]
    ended = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    if ended.returncode not in (0, 1) or not ended.stdout.strip():
        said = ended.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise CannotPlay(f"exit code {ended.returncode} of {' '.join(words)}: {said[0]}")
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def _simulate(first: int, commit: str) -> Line:
    kept = Path(ROOT / "build" / f"evidence-{first}.json")
    kept.unlink(missing_ok=True)
    words = ["--first", str(first), "--seeds", str(SIMULATED_SEEDS), "--jobs", "1", "--kept", str(kept)]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "run", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode not in (0, 1) or not kept.exists():
        raise CannotPlay(f"the simulation from seed {first} on ended with {ended.returncode}: {ended.stderr[-200:]}")
    line = line_of_simulation(json.loads(kept.read_text()), commit, ended.returncode == 1)
    kept.unlink()
    return line if ended.returncode == 0 else {**line, "first": ended.stdout.splitlines()[-2:]}
