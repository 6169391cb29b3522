"""CPU time and memory of processes, from /proc.

CPU comes from schedstat (nanoseconds on the CPU, of every thread that still lives) where the kernel keeps it, not from
the clock ticks of stat: a short run of a light process is only a few ticks long. A thread that ended takes its share
with it; the processes measured here keep theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_PRECISE = Path("/proc/self/schedstat").exists()
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def cpu_ns(pid: int) -> int:
    """Time all threads of a process have spent on a CPU. Raises FileNotFoundError once it is gone."""
    if not _PRECISE:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK_NS
    return sum(_thread_ns(task) for task in Path(f"/proc/{pid}/task").iterdir())


def _thread_ns(task: Path) -> int:
    try:
        return int((task / "schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it ended since it was listed


def rss_kb(pid: int) -> int:
    """Resident memory, pages shared with others included."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise ValueError(f"no VmRSS of {pid}")


def pss_kb(pid: int) -> int:
    """Resident memory, of pages shared with others its share: workers share most of theirs with their supervisor."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise ValueError(f"no Pss of {pid}")


class CpuMeter:
    """Time used from ``start`` on by a few processes, each under the name of what it does."""

    def __init__(self, roles: Iterable[tuple[str, int]]) -> None:
        self._roles = list(roles)
        self._before = {pid: cpu_ns(pid) for _, pid in self._roles}

    def spent_ns(self) -> dict[str, int]:
        """By role; processes of the same role are added up."""
        spent: dict[str, int] = {}
        for role, pid in self._roles:
            spent[role] = spent.get(role, 0) + cpu_ns(pid) - self._before[pid]
        return spent
