"""How a consumer's process ends: the first signal waits for its runs, the second does not."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from oarlock.queue import KeyedQueue
from oarlock.workers.process.death_signal import command_dying_with_this_process
from tests import ROOT
from tests.keyed_queue.test_kills import await_that

pytestmark = pytest.mark.real
PROGRAM = """
import sys, time
from oarlock.queue import KeyedQueue
queue = KeyedQueue("invoices", sys.argv[1])
def sync(key, ctx):
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s and not queue.look("go-on").due_in_ms:
        time.sleep(0.02)
print(queue.run(sync, lease_s=float(sys.argv[3]), for_s=float(sys.argv[2])))
"""


@pytest.fixture
def for_s() -> float:
    """How long the consumer takes keys."""
    return 60.0


@pytest.fixture
def lease_s() -> float:
    """Longer than anything holds its process up."""
    return 60.0


@pytest.fixture
def process(url: str, for_s: float, lease_s: float) -> Iterator[subprocess.Popen[str]]:
    """A consumer with the key "a" in work, and "b" queued."""
    KeyedQueue("invoices", url).add("a", "b")
    command = command_dying_with_this_process([sys.executable, "-c", PROGRAM, url, str(for_s), str(lease_s)])
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE) as started:
        await_that(lambda: KeyedQueue("invoices", url).stats().running == 1, "a is in work")
        yield started
        started.kill()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_waits_for_the_runs(process: subprocess.Popen[str], url: str, first: signal.Signals) -> None:
    queue = KeyedQueue("invoices", url)
    process.send_signal(first)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    queue.add_after("go-on", 60)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "1\n")
    assert [queue.look(key).state for key in ("a", "b")] == ["idle", "queued"]


@pytest.mark.parametrize("for_s", [3.0])
def test_the_first_signal_waits_though_the_consumer_stops_already(
    process: subprocess.Popen[str], url: str, for_s: float
) -> None:
    queue = KeyedQueue("invoices", url)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(for_s + 1.5)  # the consumer looks at its clock once a second
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.0)
    queue.add_after("go-on", 60)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "1\n")


@pytest.mark.parametrize("lease_s", [2.0])
def test_the_second_signal_does_not_wait(process: subprocess.Popen[str], url: str) -> None:
    """The key comes back after the lease."""
    queue = KeyedQueue("invoices", url)
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    for _ in range(20):  # two signals are one for a process that was held up
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
            break
    assert process.poll() == 128 + signal.SIGTERM
    seen: list[str] = []
    queue.worker()(lambda key, ctx: seen.append(key)).run(for_s=30, should_stop=lambda: len(seen) == 2)
    assert sorted(seen) == ["a", "b"]
