"""The life of a supervised worker process, from after the fork to its exit code."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from oarlock.cluster.access.errors import ConfigError
from oarlock.workers.epoch.identity import Identity
from oarlock.workers.process.exit_code import ExitCode
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.rq.client import open_rq_client
from oarlock.workers.rq.worker import KeyWorker
from oarlock.workers.supervisor.position import RunWorker

log = logging.getLogger("oarlock.fleet")

WORKER_TTL_S = 60
"""RQ's own is seven minutes, for workers that beat only between jobs; these beat every second."""


def run_supervised(settings: Settings, queues: Sequence[str], worker_class: type[KeyWorker] = KeyWorker) -> RunWorker:
    """What a supervisor runs in each of its worker processes."""

    def run_worker(identity: Identity) -> int:
        worker = worker_class(
            list(identity.queues or queues),
            identity.holder,
            connection=open_rq_client(settings),
            settings=settings,
            identity=identity,
            worker_ttl=WORKER_TTL_S,
        )
        try:
            worker.work(logging_level="WARNING")
        except ConfigError as error:
            log.error(line("unusable", worker=identity.holder, reason=error))
            return ExitCode.FAILED
        return worker.exit_code

    return run_worker
