"""The examples of the README and of the queue's page, run as a user would."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from oarlock.queue import KeyedQueue
from oarlock.workers.process.death_signal import command_dying_with_this_process
from tests import ROOT
from tests.keyed_queue.test_kills import await_that


def example(page: str) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if "KeyedQueue" in block]
    return str(found)


@pytest.mark.real
@pytest.mark.parametrize(
    ("page", "printed"),
    [("README.md", "bringing customer-{} up to date"), ("docs/keyed-queue.md", "sent customer-{} ")],
)
def test_an_example_does_what_it_says(page: str, printed: str, url: str, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(example(page))
    process = subprocess.Popen(
        command_dying_with_this_process([sys.executable, "example.py"]),
        cwd=tmp_path,
        env={**os.environ, "REDIS_URL": url, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
    queue = KeyedQueue("invoices", url)

    def all_done() -> bool:
        stats = queue.stats()
        return stats.consumers > 0 and stats.queued + stats.running == 0 and process.poll() is None

    try:
        await_that(all_done, "the keys are done")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert [out.count(printed.format(n)) for n in (17, 18)] == [1, 1]


def test_the_readme_needs_no_more_than_ten_lines() -> None:
    lines = [line for line in example("README.md").splitlines() if line.strip()]
    assert len(lines) <= 10
