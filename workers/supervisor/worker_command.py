"""The processes of `oarlock worker`: a supervisor of RQ workers for each shard, and the life of a worker."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from pathlib import Path

from oarlock.cluster.access.credentials import ConfigError
from oarlock.controllers.registry import all_queues
from oarlock.workers.epoch.identity import Identity
from oarlock.workers.process.exit_code import ExitCode
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings
from oarlock.workers.process.shards import share
from oarlock.workers.rq.client import open_rq_client
from oarlock.workers.rq.worker import KeyWorker
from oarlock.workers.supervisor.position import RunWorker
from oarlock.workers.supervisor.process_list import OnChange, file_writer
from oarlock.workers.supervisor.shard_processes import run_shards
from oarlock.workers.supervisor.supervisor import Supervisor
from oarlock.workers.turn.engine import api, dry_run, engine, read_api  # noqa: F401  # workers share what is loaded here

log = logging.getLogger("oarlock.fleet")

WORKER_TTL_S = 60
"""RQ's own is seven minutes, for workers that beat only between jobs; these beat every second."""


def run_fleet(
    settings: Settings,
    count: int,
    *,
    queues: Sequence[str] | None = None,
    state_dir: Path | None = None,
    on_change: OnChange | None = None,
    listening: Sequence[socket.socket] = (),
) -> int:
    """`oarlock worker`: ``count`` supervised RQ workers until SIGTERM. Keeps ``state_dir/workers.json`` true.

    ``listening``: where metrics and health are served, a socket for each shard that is served; none: nowhere.

    Where the cluster is divided and no shard is named, each shard has a supervisor of its own: worker i serves shard
    i modulo N. A shard's file is ``workers-<shard>.json``, and each supervisor calls ``on_change`` for its own workers.
    """

    served = all_queues() if queues is None else queues

    def supervise(mine: Settings, own: socket.socket | None) -> int:
        workers = count if settings.serves_one else share(count, int(mine.shard), mine.shards)
        file = f"workers-{mine.serves}.json" if mine.shards > 1 else "workers.json"
        told = [file_writer(state_dir / file)] if state_dir else []
        told += [on_change] if on_change else []
        run_worker = run_supervised(mine, served)
        return Supervisor(mine, workers, run_worker, queues=served, on_change=told, listening=own).run()

    return run_shards(settings, listening, supervise)


def run_supervised(settings: Settings, queues: Sequence[str], worker_class: type[KeyWorker] = KeyWorker) -> RunWorker:
    """What a supervisor runs in each of its worker processes, from after the fork to the exit code."""

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
