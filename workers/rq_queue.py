"""The public name of the queue: ``rq info --queue-class oarlock.workers.rq_queue.KeyQueue``."""

from oarlock.workers.rq.queue import KeyQueue

__all__ = ["KeyQueue"]
