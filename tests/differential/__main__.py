"""`python -m tests.differential`: play scenarios on both sides and compare.

The last line is one JSON object. Exit 0: nothing that is not explained; 1: a difference, a scenario that did not come
to rest, or fewer scenarios than asked for; 2: it could not be begun.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.differential.campaign import Plan, run
from tests.differential.shadow import run as run_shadow
from tests.realserver.beside import Broken
from tests.realserver.server import NotStarted
from tests.realserver.telling import CannotObtain


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--scenarios", type=_positive, default=20, help="how many (default 20)")
    parser.add_argument("--steps", type=_positive, default=50, help="of each scenario (default 50)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, action="append", help="play this scenario alone; may be repeated")
    parser.add_argument("--concurrency", type=_positive, default=16, help="scenarios at once (default 16)")
    parser.add_argument("--within", type=_positive, metavar="S", help="begin no more scenarios after so many seconds")
    parser.add_argument("--evidence", type=Path, help="folder for what is found (default: a new one)")
    parser.add_argument(
        "--withhold", type=int, default=-1, metavar="STEP", help="a step the fleet's side is not given: has to be found"
    )
    parser.add_argument(
        "--shadow", action="store_true", help="upstream's side alone, with a fleet that runs dry beside it"
    )
    parser.add_argument("--show", action="store_true", help="print the steps and play nothing")
    said = parser.parse_args(arguments)
    numbers = said.only if said.only else list(range(said.scenarios))
    evidence = said.evidence or Path(tempfile.mkdtemp(prefix="oarlock-diff-kcm-"))
    plan = Plan(said.seed, tuple(numbers), said.steps, said.concurrency, evidence, said.withhold, said.within)
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has them ignored
        signal.signal(number, signal.default_int_handler)
    try:
        if said.show:
            plan.show()
            return 0
        return run_shadow(plan) if said.shadow else run(plan)
    except (Broken, NotStarted, CannotObtain) as error:
        print(f"differential: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("differential: stopped", file=sys.stderr)
        return 130


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
