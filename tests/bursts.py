"""Decisions that ask for few pods, so that turns go on where others would wait for the cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import msgspec

from oarlock.controllers.registry import CONTROLLERS

QUEUES = ("replicaset", "daemonset")


@contextmanager
def bursts_of(most: int) -> Iterator[None]:
    """While it is open a decision asks for so many creates or deletes at most; 0: for as many as it does."""
    with patch.dict(CONTROLLERS):
        for queue in QUEUES if most else ():
            controller = CONTROLLERS[queue]
            flavour = msgspec.structs.replace(controller.flavour, burst=most)
            decide = partial(controller.decide, flavour=flavour)
            CONTROLLERS[queue] = msgspec.structs.replace(controller, flavour=flavour, decide=decide)
        yield
