"""The cluster as a test sees it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from oarlock.sandbox.apiserver.kubeconfig import write_kubeconfig
from oarlock.sandbox.apiserver.server import CannotListen
from oarlock.sandbox.redis.embedded_redis import RedisNotStarted
from oarlock.sandbox.redis.redis_binary import NoRedisBinary
from oarlock.testing import clients, faults, waiting
from oarlock.testing.faults import ANYONE, InjectedFault
from oarlock.testing.fleet.fleet import FleetFailed
from oarlock.testing.objects import Obj, Objects, Objs, Refused, Source
from oarlock.testing.running import Options, Running
from oarlock.testing.until import ready
from oarlock.testing.view import Target, View
from oarlock.testing.waiting import Until

TIMEOUT_S = 10.0
_NAME_MAX = 40
_numbers = itertools.count(1)

logging.getLogger("oarlock").addHandler(logging.NullHandler())  # a program without logging is to hear of nothing


class NotStarted(Exception):
    """The cluster did not come up; one line with the reason. Nothing is left running."""


class ClusterTime:
    """The cluster's clock. It goes with the machine's and can be moved forward, for all of the cluster together."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def now(self) -> float:
        """Unix seconds, as objects are stamped with."""
        return self._running.clock.unix_s()

    def advance(self, seconds: float) -> None:
        """So much time passes now. What becomes due by it (minReadySeconds, progressDeadlineSeconds, back-off, the
        delays of simulated nodes) is looked at at once; wait for what follows from it. Raises ValueError for less than
        nothing.
        """
        self._running.move_time(round(seconds * 1000))


class Cluster:
    """An API server with nodes and the built-in controllers, in this process. Use `with`, `async with`, or `start` and
    `stop`. Options: ``oarlock.testing.running.Options``. Raises ValueError for one that cannot be.

    Helpers mean ``namespace`` where they are given none.
    """

    def __init__(self, **options: Any) -> None:
        self._running = Running(Options(**options))
        self.namespace = "default"

    # -- its life ----------------------------------------------------------------------------------------------------

    def start(self) -> Cluster:
        """Return when controllers work. Raises NotStarted, and BadDefinition for an ``operator`` that cannot run."""
        try:
            self._running.start()
        except (FleetFailed, CannotListen, NoRedisBinary, RedisNotStarted, RuntimeError) as error:
            raise NotStarted(str(error)) from error
        return self

    def stop(self) -> None:
        """End everything and leave nothing behind. It is not started again: make another one."""
        self._running.stop()

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Cluster:
        return self.start()  # on this thread, a tenth of a second: a Redis server may be started by no other

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    @contextmanager
    def fresh(self, name: str = "test") -> Iterator[Cluster]:
        """The same cluster with a new namespace of its own. Afterwards faults are cleared, and it is deleted."""
        other = object.__new__(Cluster)
        other._running = self._running
        other.namespace = f"{_slug(name)}-{next(_numbers)}"
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other.namespace}})
        try:
            yield other
        finally:
            other.clear_faults()
            try:
                self.delete(f"namespace/{other.namespace}")
            except Refused as error:
                if error.code != 404:  # the test may have deleted it itself
                    raise

    # -- for clients -------------------------------------------------------------------------------------------------

    @property
    def _started(self) -> Running:
        if not self._running.url:
            raise NotStarted("the cluster does not run: use `with Cluster() as cluster:`, or call start()")
        return self._running

    @property
    def url(self) -> str:
        """Of the API server; it asks for ``token``."""
        return self._started.url

    @property
    def token(self) -> str:
        """The bearer token of every request."""
        return self._started.token

    @cached_property
    def kubeconfig(self) -> Path:
        """A kubeconfig file whose context means ``namespace``; it goes with the cluster."""
        path = self._started.directory / f"kubeconfig-{self.namespace}"
        write_kubeconfig(path, self.url, token=self.token, namespace=self.namespace)
        return path

    @cached_property
    def kubernetes(self) -> Any:
        """An ``ApiClient`` of the official client. Raises NotInstalled."""
        return clients.kubernetes(self.kubeconfig)

    @cached_property
    def kr8s(self) -> Any:
        """The API object of kr8s. Raises NotInstalled."""
        return clients.kr8s(self.kubeconfig, self.namespace)

    @cached_property
    def lightkube(self) -> Any:
        """A ``lightkube.Client``. Raises NotInstalled."""
        return clients.lightkube(self.kubeconfig, self.namespace)

    # -- objects -----------------------------------------------------------------------------------------------------

    @cached_property
    def _view(self) -> View:
        return View(self._started)

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self._started, self._view)

    def _target(self, what: str, namespace: str | None, selector: str = "") -> Target:
        return self._view.target(what, self.namespace if namespace is None else namespace, selector)

    def create(self, source: Source, *, namespace: str | None = None) -> Obj:
        """Create what a dict, YAML text or a file holds, and return it; of several the last. Raises Refused."""
        return self.create_all(source, namespace=namespace)[-1]

    def create_all(self, source: Source, *, namespace: str | None = None) -> Objs:
        """As ``create``; returns all of them, in order."""
        return self._objects.create(source, self.namespace if namespace is None else namespace)

    def get(self, what: str, *, namespace: str | None = None) -> Obj:
        """ "deployment/web". Raises Refused, with code 404 where it does not exist."""
        return self._objects.get(self._target(what, namespace))

    def list(self, kind: str, *, selector: str = "", namespace: str | None = None) -> Objs:
        """The objects of a kind; ``selector`` as in "app=web"; ``namespace`` "": of all namespaces. Raises Refused."""
        return self._objects.list(self._target(kind, namespace, selector))

    def patch(
        self, what: str, change: Mapping[str, Any], *, subresource: str = "", namespace: str | None = None
    ) -> Obj:
        """Apply a JSON merge patch and return the object. Raises Refused."""
        return self._objects.patch(self._target(what, namespace), change, subresource)

    def delete(self, what: str, *, propagation: str = "", namespace: str | None = None) -> None:
        """``propagation``: Background, Foreground, Orphan; "" is the kind's own. Raises Refused."""
        self._objects.delete(self._target(what, namespace), propagation)

    # -- waiting -----------------------------------------------------------------------------------------------------

    def wait(
        self,
        what: str,
        until: Until = ready,
        *,
        count: int | None = None,
        selector: str = "",
        namespace: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Any:
        """Wait for an object ("deployment/web") or for those of a kind ("pods"), and return what was found.

        ``until`` is called with the object, or with the list: ``ready``, ``exists``, ``gone``, ``condition(...)`` or
        anything that returns a truth. ``count``: so many of a kind, no more and no fewer. Raises NotInTime, which tells
        what there is instead.
        """
        __tracebackhide__ = True
        target = self._target(what, namespace, selector)
        return waiting.wait(self._started, self._view, target, until, count, timeout_s)

    async def wait_async(self, what: str, until: Until = ready, **options: Any) -> Any:
        """As ``wait``, without blocking the caller's event loop."""
        return await asyncio.to_thread(self.wait, what, until, **options)

    # -- faults and time -----------------------------------------------------------------------------------------------

    def fault(
        self,
        what: int | str,
        *,
        verb: str | Sequence[str] | None = None,
        resource: str = "*",
        name: str = "*",
        times: int | None = None,
        seconds: float = 0.0,
        by: str = ANYONE,
    ) -> InjectedFault:
        """Have something befall requests, from now on until the test ends; as a context manager, to its end.

        ``what``: 403, 409, 429 or 500 (refused, nothing is done); "late 500" and "no answer" (it is done all the same);
        "slow" (the answer takes ``seconds``); "slow watch" (watches say nothing for ``seconds``); 410 (at once: watches
        end, and what clients have seen is too old to go on from). ``resource``: as in "pods" or "deployments/status";
        ``name``: "web" or "namespace/web"; ``by``: "tests" is everyone but the cluster's own "controllers".
        Raises ValueError.
        """
        of = self._view.resource(resource)
        return InjectedFault(self._started, faults.fault_of(what, verb, of, name, times, seconds, by))

    def clear_faults(self) -> None:
        """End all faults."""
        in_force = self._started.api.faults
        assert in_force is not None
        self._started.call(in_force.clear)

    @cached_property
    def time(self) -> ClusterTime:
        """The clock of the whole cluster."""
        return ClusterTime(self._started)


def _slug(name: str) -> str:
    """Fit for the name of a namespace."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_NAME_MAX].strip("-") or "test"
