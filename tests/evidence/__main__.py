"""Play campaigns of all sorts of faults until every goal of docs/evidence.md is reached, and keep what each came to.

`python -m tests.evidence play` goes on where it was stopped, with the sort that is the furthest from its goal; `table`
makes the tables of docs/evidence.md anew. What is played has to be committed: a line names the commit.

Exit 0: each passed; 1: one did not, and no further one was begun; 2: it could not be begun; 130: interrupted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests import ROOT
from tests.evidence.campaigns import ALONE, CAMPAIGNS, Line, campaigns
from tests.evidence.page import PAGE, page
from tests.evidence.played import KEPT, append, read
from tests.evidence.player import Player, carry_out

PLAYED = (".", ":!tests", ":!docs", ":!*.md")
"""What a campaign depends on: the commit that it is told with is the last that changed any of this."""
ALL = 1 << 30


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.command == "table":
        PAGE.write_text(page(PAGE.read_text(), read(options.kept)))
        return 0
    if options.slices < 1 or options.jobs < 1:
        return _problem("--slices and --jobs are numbers from 1 on")
    if not any(options.only in each.kind for each in campaigns(())):
        return _problem(f"--only {options.only}: there are {', '.join(each.kind for each in campaigns(()))}")
    if _git("status", "--porcelain", "--", *PLAYED):
        return _problem("there are changes that no commit has; commit them, so that the line can name what was played")
    commit = _git("log", "-1", "--format=%h", "--abbrev=7", "--", *PLAYED)
    lines, begun_s = read(options.kept), time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - begun_s:6.0f} s  {text}; {_come(lines, commit)}", flush=True)

    def keep(line: Line) -> None:
        lines.append(dict(line))
        append(line, options.kept)

    try:
        good = Player(lines, commit, keep, tell, carry_out).play(options.slices, options.jobs, options.only)
    except KeyboardInterrupt:
        return 130
    return 0 if good else 1


def _come(lines: Sequence[Line], commit: str) -> str:
    """How far all have come, for people."""
    good = [line for line in lines if line["verdict"] == "pass"]
    alone = {line["kind"] for line in good if line["commit"] == commit and line["kind"] in ALONE}
    come = [f"{each.kind} {100 * each.come(good):.0f} %" for each in CAMPAIGNS]
    return f"{', '.join(come)}, alone {len(alone)} of {len(ALONE)}"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def _problem(text: str) -> int:
    print(f"evidence: {text}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.evidence", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    play = commands.add_parser("play", help="the next campaigns")
    play.add_argument("--slices", type=int, default=ALL, help="how many campaigns (default: until all is played)")
    play.add_argument("--jobs", "-j", type=int, default=2, help="how many side by side (default 2)")
    play.add_argument("--only", default="", metavar="TEXT", help="campaigns whose kind has this in its name")
    table = commands.add_parser("table", help="make the tables of docs/evidence.md anew")
    for each in (play, table):
        each.add_argument("--kept", type=Path, default=KEPT, metavar="FILE", help="the lines (played.jsonl)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
