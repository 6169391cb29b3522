"""Many simulated runs, and what has been taken out to see that these runs notice.

`python -m tests.simulation run --seeds 1000` goes on where an earlier search over the same code stopped. `python -m
tests.simulation mutants` lists every mechanism that is taken out, and the test that misses it.

Exit 0: every seed kept every invariant; 1: one did not; 2: bad input; 130: interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests import ROOT
from tests.simulation.many import Failure, Search, parts, places
from tests.simulation.mutant_table import rows

KEPT = ROOT / "build" / "sim.json"
TOLD = ("killed with a write under way", "late commits", "unanswered", "already exists", "redis losses")
"""What happened, of interest at the end."""
EACH_S = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.command == "mutants":
        return _tell_mutants()
    if options.seeds < 1 or options.first < 1 or options.jobs < 1:
        return _problem("--seeds, --first and --jobs are numbers from 1 on")
    chosen = places(options.only)
    if not chosen:
        return _problem(f"--only {options.only!r}: no scenario has it in its name; see --list")
    if options.list:
        print(*chosen, sep="\n")
        return 0
    search = Search.begun(options.kept, options.only, options.first)
    last = options.first + options.seeds - 1
    if search.next > search.first:
        print(f"seeds {search.first} to {search.next - 1} have been run over this code")
    try:
        failure = _go_on(search, last, options)
    except KeyboardInterrupt:
        print(f"interrupted; seeds {search.first} to {search.next - 1} are done, the same command goes on from there")
        return 130
    if failure is not None:
        print(f"seed {failure.seed} fails: {failure.said}")
        again = f"python -m tests.simulation run --only {str(failure.place)!r} --first {failure.seed} --seeds 1"
        print(f"it is run alone by: {again}")
        return 1
    seen = ", ".join(f"{search.seen[what]:,} {what}" for what in TOLD)
    of = f"{search.next - search.first:,} seeds of {len(chosen)} scenarios"
    print(f"{of}, {search.churned_hours:,.1f} hours of simulated churn, kept every invariant; {seen}")
    print(f"{search.per_minute:,.0f} seeds a minute of a core")
    return 0


def _go_on(search: Search, last: int, options: argparse.Namespace) -> Failure | None:
    """The first failure. What was run is kept with each part."""
    told_s = time.monotonic()
    for part in parts(places(search.only), search.next, last, options.jobs):
        search.add(part)
        search.keep(options.kept)
        if part.failure is not None:
            return part.failure
        if time.monotonic() - told_s > EACH_S:
            told_s = time.monotonic()
            print(f"seed {search.next - 1:,} of {last:,}, {search.per_minute:,.0f} a minute of a core", flush=True)
    return None


def _tell_mutants() -> int:
    found = rows()
    width = max(len(each.name) for each in found)
    for each in found:
        print(f"{each.name:{width}}  {each.test}")
    print(f"{len(found)} mechanisms are taken out, each of them missed by the test beside it")
    return 0


def _problem(text: str) -> int:
    print(f"simulation: {text}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="many seeds of all scenarios")
    run.add_argument("--seeds", type=int, default=1_000, help="how many (default 1000)")
    run.add_argument("--first", type=int, default=1, help="the first (default 1)")
    run.add_argument("--only", default="", metavar="TEXT", help="scenarios whose names contain it")
    run.add_argument("--list", action="store_true", help="print the scenarios")
    run.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default one a core)")
    run.add_argument("--kept", type=Path, default=KEPT, metavar="FILE", help="how far it has come (build/sim.json)")
    commands.add_parser("mutants", help="what is taken out, and the test that misses it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
