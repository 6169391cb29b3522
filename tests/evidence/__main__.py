"""Play campaigns of kills, one seed after the other, and keep what each came to.

`python -m tests.evidence play --slices 10` plays the next ten seeds; `table` makes the table of docs/evidence.md anew.
What is killed has to be committed: a line names the commit that was played.

Exit 0: each passed; 1: one did not, and no further one was played; 2: it could not be begun; 130: interrupted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests import ROOT
from tests.evidence.played import PAGE, WANTED, append, line_of, next_seed, page, read, totals

FIRST_SEED, FAULTS = 1_001, 300
PLAYED = (".", ":!tests", ":!docs", ":!*.md")
"""What a campaign depends on: the commit that it is told with is the last that changed any of this."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.command == "table":
        PAGE.write_text(page(PAGE.read_text(), read()))
        return 0
    if options.slices < 1 or options.faults < 10:
        return _problem("--slices is a number from 1 on, --faults one from 10 on")
    if _git("status", "--porcelain", "--", *PLAYED):
        return _problem("there are changes that no commit has; commit them, so that the line can name what was played")
    commit = _git("log", "-1", "--format=%h", "--abbrev=7", "--", *PLAYED)
    try:
        for _ in range(options.slices):
            if _slice(commit, options.faults) != "pass":
                return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _slice(commit: str, faults: int) -> str:
    """Play the next seed, and keep what it came to. Returns the verdict."""
    seed = next_seed(read(), FIRST_SEED)
    print(f"seed {seed}: {faults} faults ...", flush=True)
    line = line_of(play(seed, faults), commit)
    append(line)
    so_far = ", ".join(f"{played:,} of {WANTED[fault]:,} {fault}" for fault, played in totals(read()).items())
    print(f"seed {seed}: {line['verdict']}, {line['violations']} violations; in all {so_far}", flush=True)
    return str(line["verdict"])


def play(seed: int, faults: int) -> dict[str, Any]:
    """One campaign in a process of its own; the JSON that it ends with. Raises CalledProcessError without one."""
    words = [sys.executable, "-m", "oarlock.cli", "chaos", "--seed", str(seed), "--faults", str(faults), "-o", "json"]
    ended = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode not in (0, 1) or not ended.stdout.strip():
        raise subprocess.CalledProcessError(ended.returncode, words)
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def _problem(text: str) -> int:
    print(f"evidence: {text}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.evidence", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    play = commands.add_parser("play", help="the next campaigns")
    play.add_argument("--slices", type=int, default=1, help="how many campaigns (default 1)")
    play.add_argument("--faults", type=int, default=FAULTS, help="of each (default 300: 4 minutes)")
    commands.add_parser("table", help="make the table of docs/evidence.md anew")
    return parser


if __name__ == "__main__":
    sys.exit(main())
