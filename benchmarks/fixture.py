"""The pytest fixture `cluster`: how long it takes to be ready, and a hundred tests that each bring up a Deployment.

Each start is one of a new interpreter. The tests are pytest's own run over a file as a user would write it, from the
start of the interpreter to its end; each makes a Deployment of three pods, waits until it and they are ready, and asks
for its pods. On the twin in memory, and the same on a Redis server.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.report import Unfit, median, say, spread

PLACES = {"memory": "0", "redis": "1"}
START = """
import time
begun_s = time.perf_counter()
from oarlock.testing.cluster import Cluster
imported_s = time.perf_counter()
with Cluster():
    ready_s = time.perf_counter()
ended_s = time.perf_counter()
print(imported_s - begun_s, ready_s - imported_s, ended_s - ready_s)
"""
TESTS = '''
import pytest

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1"}]}
"""


@pytest.mark.parametrize("number", range(NUMBER))
def test_deployment(cluster, number):
    cluster.create(WEB)
    cluster.wait("deployment/web")
    assert len(cluster.wait("pods", count=3, selector="app=web")) == 3
'''
LIMIT_S = 300


def start(redis: str) -> tuple[float, float, float]:
    """Seconds to import it, until it is ready, and to end it."""
    done = _run(["-c", START], redis, Path.cwd())
    imported_s, ready_s, ended_s = map(float, done.split())
    return imported_s, ready_s, ended_s


def tests(number: int, redis: str) -> float:
    """Seconds of a whole run of pytest over so many tests."""
    with tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder:
        (Path(folder) / "test_web.py").write_text(TESTS.replace("NUMBER", str(number)))
        begun_s = time.perf_counter()
        said = _run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "."], redis, Path(folder))
        took_s = time.perf_counter() - begun_s
    if re.search(rf"^{number} passed in ", said, flags=re.MULTILINE) is None:
        raise Unfit(f"not all of {number} tests passed: {said.splitlines()[-1]}")
    return took_s


def _run(arguments: Sequence[str], redis: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"OARLOCK_TEST_REDIS": redis},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise Unfit(f"exit code {done.returncode}: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
    return done.stdout


def main() -> None:
    args = _parser().parse_args()
    facts: dict[str, object] = {"benchmark": "fixture", "starts": args.starts, "tests": args.tests}
    rows = []
    for place, redis in PLACES.items():
        say(f"{args.starts} starts and {args.rounds} x {args.tests} tests, data in {place} ...")
        starts = [start(redis) for _ in range(args.starts)]
        runs = [tests(args.tests, redis) for _ in range(args.rounds)]
        imports, readies, ends = ([each[at] * 1e3 for each in starts] for at in range(3))
        facts |= {
            f"import_ms_p50_{place}": round(median(imports), 1),
            f"ready_ms_p50_{place}": round(median(readies), 1),
            f"end_ms_p50_{place}": round(median(ends), 1),
            f"tests_s_{place}": round(median(runs), 2),
        }
        rows.append((place, spread(imports), spread(readies), spread(ends), spread(runs, 2)))
    headings = ["data in", "import, ms", "until ready, ms", "to end, ms", f"{args.tests} tests, s"]
    report.show("The fixture `cluster`: median [least-most]", headings, rows)
    report.finish(facts)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fixture", description=__doc__)
    add = parser.add_argument
    add("--starts", type=int, default=10)
    add("--tests", type=int, default=100)
    add("--rounds", type=int, default=3)
    return parser


if __name__ == "__main__":
    report.main(main)
