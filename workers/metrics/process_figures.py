"""What the kernel says of a process and its children: time, memory, descriptors."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from oarlock.workers.metrics.samples import Samples

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """``cpu_s`` with, ``own_cpu_s`` without children that have ended and were waited for."""

    cpu_s: float
    own_cpu_s: float
    resident_bytes: int
    virtual_bytes: int
    fds: int
    started_s: float


def read(pid: int, proc: Path = Path("/proc")) -> ProcessFigures | None:
    """None where there is no such process (any more), or no /proc."""
    here = proc / str(pid)
    try:
        # The name may hold spaces and brackets; what follows its last one does not.
        words = (here / "stat").read_text().rpartition(")")[2].split()
        fds = len(os.listdir(here / "fd"))
        booted_s = next(
            int(line.split()[1]) for line in (proc / "stat").read_text().splitlines() if line.startswith("btime")
        )
    except (OSError, StopIteration):
        return None
    user, system, child_user, child_system = (int(word) / _TICKS for word in words[11:15])
    return ProcessFigures(
        user + system + child_user + child_system,
        user + system,
        _proportional_bytes(here) or int(words[21]) * _PAGE,
        int(words[20]),
        fds,
        booted_s + int(words[19]) / _TICKS,
    )


def _proportional_bytes(here: Path) -> int:
    """The proportional set size: a shared page counts in parts, and forked workers share most pages. 0: not known."""
    try:
        for line in (here / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # an old kernel, or a process of another user
    return 0


class ProcessSamples:
    """Of one process and those it started. CPU time never decreases, even if a child ends while it is read."""

    def __init__(self, pid: int) -> None:
        self._pid, self._cpu_s = pid, 0.0

    def put(self, samples: Samples, others: Iterable[int] = ()) -> None:
        """``others``: pids of its children that live."""
        main = read(self._pid)
        if main is None:
            return
        found = [each for each in map(read, others) if each is not None]
        self._cpu_s = max(self._cpu_s, main.cpu_s + sum(each.own_cpu_s for each in found))
        samples.put("process_cpu_seconds_total", self._cpu_s)
        everybody = [main, *found]
        samples.put("process_resident_memory_bytes", sum(each.resident_bytes for each in everybody))
        samples.put("process_virtual_memory_bytes", sum(each.virtual_bytes for each in everybody))
        samples.put("process_open_fds", sum(each.fds for each in everybody))
        samples.put("process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        samples.put("process_start_time_seconds", main.started_s)


def put_build(samples: Samples, role: str) -> None:
    """Which Python, which oarlock."""
    samples.put("python_info", 1, platform.python_implementation(), platform.python_version())
    try:
        ours = version("oarlock")
    except PackageNotFoundError:
        ours = "unknown"
    samples.put("oarlock_build_info", 1, ours, role)
