"""Stops the fleet while upstream's controllers work on our kinds: logs it, and lets no turn begin."""

from __future__ import annotations

import logging

from oarlock.broker.protocol import Broker
from oarlock.workers.ingest.upstream_detector import UpstreamDetector, mend
from oarlock.workers.process.log_line import line

SAY_EVERY_MS = 60_000

log = logging.getLogger("oarlock.ingest")


class UpstreamGuard:
    """``alongside``: only log it, and work on."""

    def __init__(self, detector: UpstreamDetector, alongside: bool) -> None:
        self._detector, self._alongside = detector, alongside
        self._why = ""
        self._say_due_ms: int | None = None

    def step(self, broker: Broker, paused: bool, now_ms: int) -> None:
        """Act on new evidence. ``paused``: the fleet is stopped already. Raises EpochOver and BrokerUnreachable."""
        latest = self._detector.latest
        if latest is not None:
            if not self._alongside:
                broker.pause(str(latest))
            self._detector.latest = None  # only now, so that a call without an answer is repeated
            self._why = str(latest)
        if (latest is None and not paused) or (self._say_due_ms is not None and now_ms < self._say_due_ms):
            return
        self._say_due_ms = now_ms + SAY_EVERY_MS
        evidence = self._why or "another ingestor saw it; `oarlock epoch` names it"
        if self._alongside:
            log.warning(line("upstream is active", evidence=evidence, mend=mend()))
        else:
            then = f"{mend()}, then `oarlock resume`"
            log.critical(line("upstream is active, fleet paused", evidence=evidence, mend=then))
