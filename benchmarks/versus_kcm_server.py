"""What a run asks of everything that is not measured: CPU of API server, etcd and client, requests, idle cores.

On a machine whose cores are all at work the wall time of a run is the CPU of all that takes part; where cores stay
idle, something waits instead. So these figures say which of the two a slow run is.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import CpuMeter

_REQUEST = re.compile(r"^apiserver_request_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Around:
    """``cpu_ms``: by program, or "client". ``idle``: share of all cores that did nothing. ``requests``: answered by the
    server, watches left out, by "VERB resource"; the client's are among them.
    """

    cpu_ms: Mapping[str, float] = field(default_factory=dict)
    idle: float = 0.0
    requests: Mapping[str, int] = field(default_factory=dict)


NOTHING_AROUND = Around()


def requests_told(metrics: str) -> Counter[str]:
    """Requests so far, from the text of the server's /metrics."""
    told: Counter[str] = Counter()
    for labels, count in _REQUEST.findall(metrics):
        of = dict(_LABEL.findall(labels))
        if of.get("verb") not in ("WATCH", "CONNECT"):
            parts = (of.get("resource", ""), of.get("subresource", ""))
            told[f"{of.get('verb')} {'/'.join(part for part in parts if part)}".strip()] += round(float(count))
    return told


def idle_ticks() -> tuple[int, int]:
    """Clock ticks in which the machine's cores did nothing, and all of them."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


class ServerMeter:
    """From ``start`` on. ``pids``: by program; ``metrics``: reads the server's /metrics."""

    def __init__(self, pids: Mapping[str, int], metrics: Callable[[], str]) -> None:
        self._metrics = metrics
        self._requests = requests_told(metrics())
        self._meter = CpuMeter([*pids.items(), ("client", os.getpid())])
        self._ticks = idle_ticks()

    def spent(self) -> Around:
        """Since the start."""
        idle, every = (now - before for now, before in zip(idle_ticks(), self._ticks, strict=True))
        cpu_ms = {program: ns / 1e6 for program, ns in self._meter.spent_ns().items()}
        requests = requests_told(self._metrics()) - self._requests
        return Around(cpu_ms, idle / every if every else 0.0, dict(requests))
