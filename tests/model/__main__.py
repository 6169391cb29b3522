"""`python -m tests.model`: search the wide cases, print how many states each has.

Exit 0: the rule holds; 1: it does not; 2: there is no such case.
"""

from __future__ import annotations

import argparse
import sys

from tests.model.cases import LIVELY, MUTANTS, SAFE, WIDE, Case
from tests.model.clock import ClockRule, ends_too_early, ticks_until_over
from tests.model.rollout import cases as rollout

SETS: dict[str, tuple[Case | rollout.Case, ...]] = {
    "wide": WIDE,
    "small": (*SAFE, *LIVELY),
    "mutants": MUTANTS,
    "rollout": (*rollout.SAFE, *rollout.LIVELY),
    "rollout-wide": rollout.WIDE,
    "rollout-mutants": rollout.MUTANTS,
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("cases", nargs="?", default="wide", choices=sorted(SETS), help="which (default wide)")
    parser.add_argument("--limit", type=int, default=1_000_000, help="states of a case at most (default 1,000,000)")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains it")
    parser.add_argument("--trace", action="store_true", help="print the shortest way to each violation")
    said = parser.parse_args(arguments)
    chosen = [case for case in SETS[said.cases] if said.only in case.name]
    if not chosen:
        print(f"model: no case is called {said.only!r}; leave --only out to search all", file=sys.stderr)
        return 2
    failed = False
    for case in chosen:
        result = case.search(said.limit)
        verdict = "holds" if result.holds else result.why or f"no rest from {result.stuck} states"
        cut = ", cut off" if result.cut else ""
        print(f"{case.name:62} {result.states:9,} states{cut} {result.seconds:6.1f} s  {verdict}", flush=True)
        if said.trace and not result.holds:
            print(*(f"    {line}" for line in result.trace or [repr(result.example)]), sep="\n")
        failed |= result.holds == said.cases.endswith("mutants")
    states, early = ends_too_early(ClockRule())
    over = ticks_until_over(ClockRule())
    print(f"{'clock of D':62} {states:9,} states           {'; '.join(early) or 'holds'}, over after {over} ticks")
    return int(failed or bool(early) or over is None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
