"""The public name of the worker: ``rq worker --worker-class oarlock.workers.rq_worker.FleetWorker``."""

from oarlock.workers.rq.worker import FleetWorker

__all__ = ["FleetWorker"]
