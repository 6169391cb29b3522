"""An exception handler in RQ's manner."""

from __future__ import annotations

from typing import Any


def note(job: Any, kind: type[BaseException], error: BaseException, trace: Any) -> bool:
    job.connection.rpush("rq:test:handled", f"{job.description}: {error}")
    return True
