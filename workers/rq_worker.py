"""The public name of the worker: ``rq worker --worker-class oarlock.workers.rq_worker.FleetWorker replicaset``."""

import sys

from oarlock.controllers.builtin import register_builtin
from oarlock.workers.supervisor.lone_worker import FleetWorker

__all__ = ["FleetWorker"]

register_builtin()  # RQ's own command imports this module, and nothing else of ours, before it makes a worker

if __name__ == "workers.rq_worker":  # as the last release called it: found from the top of a checkout, and in the image
    print(f"oarlock: {__name__} is oarlock.{__name__} now; the next release drops the old name", file=sys.stderr)
