"""The public name of the queue: ``rq info --queue-class oarlock.workers.rq_queue.KeyQueue``."""

import sys

from oarlock.workers.rq.queue import KeyQueue

__all__ = ["KeyQueue"]

if __name__ == "workers.rq_queue":  # as the last release called it: found from the top of a checkout, and in the image
    print(f"oarlock: {__name__} is oarlock.{__name__} now; the next release drops the old name", file=sys.stderr)
