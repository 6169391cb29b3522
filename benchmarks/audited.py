"""The API server's audit log, read while the server goes on writing it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from oarlock.cluster.client import Client
from oarlock.cluster.resources import REPLICASETS
from oarlock.workers.process.io_loop import IoLoop

LIMIT_S = 60.0


class Audited(Protocol):
    """A Tree or a Place."""

    client: Client
    io: IoLoop

    def await_true(self, reached: Callable[[], bool], what: str, limit_s: float) -> Any:
        """Wait. Raises Unfit."""


def await_audited(where: Audited, audit_log: Path) -> None:
    """Until the log has all that was answered before: it is written some time later, in the order of the answers, and
    the refusal of a write to a ReplicaSet that is not there comes last.
    """
    mark, before = f"mark-{time.monotonic_ns()}", audit_log.stat().st_size
    where.io.run(where.client.patch(REPLICASETS, "default", mark, b"{}"), LIMIT_S)

    def written() -> bool:
        return any(mark.encode() in line for line in whole_lines(audit_log, before))

    where.await_true(written, "the audit log", LIMIT_S)


def whole_lines(audit_log: Path, since: int = 0) -> Iterator[bytes]:
    """From this byte on, those that are written to their ends: of a large write a reader may see the first part."""
    with audit_log.open("rb") as lines:
        lines.seek(since)
        for line in lines:
            if line.endswith(b"\n"):
                yield line
