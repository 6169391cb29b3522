"""A cluster in a test: the embedded API server with the real controllers, all in this process.

    def test_it(cluster):                          # pytest; elsewhere: with oarlock.testing.Cluster() as cluster:
        cluster.create(Path("web.yaml"))
        cluster.wait("deployment/web")

How to use it: docs/testing-your-code.md. Importing this module costs nothing; a cluster's parts are imported when the
first one is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oarlock.testing.cluster import Cluster, NotStarted
    from oarlock.testing.faults import InjectedFault
    from oarlock.testing.objects import Refused
    from oarlock.testing.steps.context import FakeAsyncContext, FakeContext
    from oarlock.testing.until import condition, exists, gone, ready
    from oarlock.testing.waiting import NotInTime

__all__ = [
    "Cluster",
    "FakeAsyncContext",
    "FakeContext",
    "InjectedFault",
    "NotInTime",
    "NotStarted",
    "Refused",
    "condition",
    "exists",
    "gone",
    "ready",
]

_PLACES = {
    "Cluster": "cluster",
    "FakeAsyncContext": "steps.context",
    "FakeContext": "steps.context",
    "NotStarted": "cluster",
    "InjectedFault": "faults",
    "Refused": "objects",
    "NotInTime": "waiting",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'until')}"), name)
