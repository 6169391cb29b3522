"""`python -m tests.planted`: plant each fault in a running fleet, and ask as docs/troubleshoot.md says.

Exit 0: each channel named the cause and the object of each within two minutes, and no longer once it was healed; 1: not
so; 2: it could not be begun.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from oarlock.cli.tables import show
from tests.cli.board.browser import MISSING
from tests.planted import deaf, flood, poison, quota, webhook
from tests.planted.board import BoardPage
from tests.planted.fault import Channel, Channels, Fault, NotSeen, Outcome, play
from tests.planted.fleet import Fleet
from tests.planted.page import PAGE, prelude, sections

FAULTS: Mapping[str, Sequence[Fault]] = {
    "webhook": [webhook.FAULT],
    "quota": [quota.FAULT],
    "deaf": deaf.FAULTS,
    "poison": [poison.FAULT],
    "flood": [flood.FAULT],
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=FAULTS, action="append", help="plant this one; may be repeated")
    said = parser.parse_args(arguments)
    missing = [name for name in ("bash", "redis-cli") if not shutil.which(name)]
    if missing:
        print(f"planted: install {', '.join(missing)}; on Debian: apt-get install bash redis-tools", file=sys.stderr)
        return 2
    if MISSING:
        print(f"planted: the page of the board is not looked at: {MISSING}", file=sys.stderr)
        if os.environ.get("CI"):
            return 2
    root = Path(tempfile.mkdtemp(prefix="oarlock-planted-"))
    begun_s, outcomes = time.monotonic(), list[Outcome]()
    try:
        with ExitStack() as opened:
            fleet = opened.enter_context(Fleet(root, said.seed))
            board = None if MISSING else opened.enter_context(BoardPage(root, root / "state"))
            asked = channels(fleet, root / "state", board)
            for name in said.only or FAULTS:
                outcomes += play(FAULTS[name], fleet, asked)
                print(f"{name}: named and healed, {time.monotonic() - begun_s:.0f} s since the begin", file=sys.stderr)
    except NotSeen as error:
        print(f"planted: {error}\nThe logs are in {root}", file=sys.stderr)
        return 1
    finally:
        table(outcomes)
    print(f"{len(outcomes)} faults, seed {said.seed}, {time.monotonic() - begun_s:.0f} s")
    shutil.rmtree(root)
    return 0


def channels(fleet: Fleet, state: Path, board: BoardPage | None) -> Channels:
    """The ways to ask, by the heading of a section. ``board``: None where there is no browser."""
    text = PAGE.read_text()
    first, of = prelude(text, str(state)), sections(text)

    def asked(heading: str) -> Mapping[str, Channel]:
        section = of[heading]
        found: dict[str, Channel] = {
            "cli": lambda: fleet.ask("\n".join((first, *section.cli))),
            "redis-cli": lambda: fleet.ask("\n".join((first, *section.redis))),
        }
        if board is not None:
            found["page"] = lambda: board.ask(section.board)
            if section.board.key:
                found["page of key"] = lambda: board.ask_key(section.board)
        return found

    return asked


def table(outcomes: list[Outcome]) -> None:
    """Seconds, for people."""
    rows = [
        {"fault": each.title, **{name: f"{s:.1f}" for name, s in each.named_s.items()}, "gone": f"{each.gone_s:.1f}"}
        for each in outcomes
    ]
    names = {name: f"{name.upper()} S" for each in outcomes for name in each.named_s}
    show(rows, {"fault": "FAULT", **names, "gone": "GONE AFTER S"}, "table", empty="no fault was played")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
