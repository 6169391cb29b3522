"""The public name of the worker: ``rq worker --worker-class oarlock.workers.rq_worker.FleetWorker replicaset``."""

import sys

from oarlock.workers.supervisor.lone_worker import FleetWorker

__all__ = ["FleetWorker"]

if __name__ == "workers.rq_worker":  # as the last release called it: found from the top of a checkout, and in the image
    print(f"oarlock: {__name__} is oarlock.{__name__} now; the next release drops the old name", file=sys.stderr)
