"""`python -m tests.conformance`: upstream's end-to-end cases of our kinds, against a fleet in its manager's place.

etcd, kube-apiserver, upstream's scheduler, its controller manager with all but our controllers, simulated nodes and a
fleet. Exit 0: every case passed but those that are listed as not played; 1: not so, or fewer cases than there have to
be; 2: it could not be begun, or the cluster broke under it.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conformance import table
from tests.conformance.cases import LEAST, NOT_PLAYED, absent, called, of_kinds
from tests.conformance.results import Result
from tests.conformance.suite import Suite, tell
from tests.realserver.beside import OURS, Beside, Broken
from tests.realserver.programs import obtain
from tests.realserver.server import NotStarted, RealServer
from tests.realserver.telling import CannotObtain

PROGRAMS = ("e2e.test", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Obtained together, as one build makes them in half the time."""
NODES = ("--count", "3", "--no-schedule", "--no-lifecycle", "--ready-ms", "2500")
"""Ready after a while: the suite wants to see rollouts under way."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    kinds = ", ".join(f"'{kind}'" for kind in LEAST)
    parser.add_argument("--kind", choices=LEAST, action="append", metavar="KIND", help=f"{kinds}; may be repeated")
    parser.add_argument("--within", type=float, default=840.0, metavar="S", help="end the suite after it (default 840)")
    parser.add_argument(
        "--evidence", type=Path, help="folder for logs and reports (default: a new one, kept if all is not well)"
    )
    said = parser.parse_args(arguments)
    evidence = said.evidence or Path(tempfile.mkdtemp(prefix="oarlock-conformance-"))
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has them ignored
        signal.signal(number, signal.default_int_handler)
    try:
        code = _judge(said.kind or list(LEAST), evidence.resolve(), said.within)
    except (Broken, NotStarted, CannotObtain) as error:
        tell(str(error))
        code = 2
    except KeyboardInterrupt:
        tell("stopped")
        code = 130
    if said.evidence is None and code == 0:
        shutil.rmtree(evidence)
    else:
        print(f"logs and reports: {evidence}")
    return code


def _judge(kinds: Sequence[str], evidence: Path, limit_s: float) -> int:
    suite = Suite(obtain(*PROGRAMS)["e2e.test"], evidence)
    all_texts = suite.texts()
    texts = of_kinds(all_texts, kinds)
    problems = absent(all_texts, kinds)
    began_s = time.monotonic()
    results = _run(suite, [text for text in texts if called(text) not in NOT_PLAYED], evidence, limit_s)
    rows = table.rows(texts, results)
    problems += table.others_failed(texts, results)
    problems += [f"{row.text}: {row.result}" for row in rows if not row.ok]
    print(table.drawn(rows))
    print(f"in {time.monotonic() - began_s:.0f} s")
    for problem in problems:
        print(f"NOT AS IT HAS TO BE: {problem}")
    return 1 if problems else 0


def _run(suite: Suite, texts: Sequence[str], evidence: Path, limit_s: float) -> dict[str, Result]:
    tell(f"{len(texts)} cases; starting a server, upstream's other controllers and scheduler, nodes and a fleet ...")
    with RealServer(evidence / "server") as server, Beside(evidence, server.kubeconfig) as beside:
        beside.watch(server.run_controllers("*", *(f"-{name}" for name in OURS)))
        beside.watch(server.run_scheduler())
        beside.start_nodes(*NODES)
        beside.start_fleet()
        return suite.run(texts, server.kubeconfig, limit_s=limit_s, check=beside.check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
