"""The embedded cluster as one thing to start and stop: store, HTTP server, and what lives beside them."""

from __future__ import annotations

import asyncio
import errno
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from oarlock.sandbox.apiserver.custom.definitions import Definitions
from oarlock.sandbox.apiserver.errors import bad_request
from oarlock.sandbox.apiserver.http.audit import AuditLog
from oarlock.sandbox.apiserver.http.faults import Fault, Faults
from oarlock.sandbox.apiserver.http.hosts import Hosts
from oarlock.sandbox.apiserver.http.identity import Identity
from oarlock.sandbox.apiserver.http.negotiation import decode_json
from oarlock.sandbox.apiserver.http.requests import Requests
from oarlock.sandbox.apiserver.http.watch import Pace
from oarlock.sandbox.apiserver.loops.background import Background, StoreFollower
from oarlock.sandbox.apiserver.loops.expiry import EventExpiry, HistoryExpiry
from oarlock.sandbox.apiserver.loops.garbage import GarbageCollector
from oarlock.sandbox.apiserver.loops.namespaces import NamespaceCollector
from oarlock.sandbox.apiserver.loops.quota import Quotas
from oarlock.sandbox.apiserver.loops.service_accounts import ServiceAccounts
from oarlock.sandbox.apiserver.store.history import EVENTS_MAX
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.verbs.admission import Admission
from oarlock.sandbox.apiserver.verbs.rest import Rest
from oarlock.sandbox.apiserver.verbs.service_addresses import ServiceAddresses
from oarlock.sandbox.nodes.api.pod_api import StorePodApi
from oarlock.sandbox.nodes.settings import NodeSettings
from oarlock.sandbox.nodes.simulator import Simulator

FIRST_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_BODY_BYTES_MAX: Final = 3 * 1024 * 1024  # upstream's limit of a request
_WATCH_TICK_S: Final = 0.25  # how exactly bookmarks, stalls and timeouts of watches are kept
_SHUTDOWN_S: Final = 1.0
_BACKLOG: Final = 1024


class CannotListen(Exception):
    """The address is taken or not ours; the message is one line for people."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run. Port 0: any free port. `nodes` None: none are simulated.

    `faults_enabled` opens the admin endpoint: `/_oarlock/faults` and, with nodes, `/_oarlock/fail-pod`.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    client_ca_file: Path | None = None
    audit_log: Path | None = None
    audit_full_for_all: bool = False
    audit_reads: bool = False
    faults_enabled: bool = False
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    history_events_max: int = EVENTS_MAX
    pace: Pace = field(default_factory=Pace)
    nodes: NodeSettings | None = None


class EmbeddedCluster:
    """An API server in this process. Use `start` and `stop`, or `async with`.

    `clock`: unix seconds, what objects are stamped with; `monotonic`: of the simulated nodes' delays.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings or Settings()
        self.store = Store(clock=clock, history_events_max=self.settings.history_events_max)
        self.admission = Admission(self.store)
        self.rest = Rest(self.store, self.admission)
        quotas = Quotas(self.store)
        self.admission.on_create(quotas.check_create)
        self.admission.on_completion(ServiceAddresses(self.store).given)
        # What runs beside the server, in the order of starting.
        self._companions: list[StoreFollower | Background] = [
            Definitions(self.store),
            quotas,
            GarbageCollector(self.store),
            ServiceAccounts(self.store),
            NamespaceCollector(self.store),
            EventExpiry(self.store),
            HistoryExpiry(self.store),
        ]
        self.simulator: Simulator | None = None
        if self.settings.nodes is not None:
            self.simulator = Simulator(StorePodApi(self.store), self.settings.nodes, clock=clock, monotonic=monotonic)
            self._companions.append(self.simulator)
        self.faults = Faults(self.settings.seed) if self.settings.faults_enabled else None
        self.url = ""
        self.requests: Requests
        self._audit: AuditLog | None = None
        self._runner: web.ServerRunner | None = None
        self._ticker = Background("tick of the watches", self._tick)

    async def start(self) -> str:
        """Listen and make the first namespaces. Returns the URL. Raises CannotListen."""
        settings = self.settings
        if settings.audit_log is not None:
            self._audit = AuditLog(
                settings.audit_log,
                full_for_all=settings.audit_full_for_all,
                reads=settings.audit_reads,
            )
        self.requests = Requests(
            self.rest,
            audit=self._audit,
            faults=self.faults,
            identity=Identity(settings.token, certificates=settings.client_ca_file is not None),
            hosts=Hosts(settings.host),
            pace=settings.pace,
        )
        for fault in settings.faults:
            self.requests.inject(fault)
        if self.simulator is not None and settings.faults_enabled:
            self.requests.add_admin("fail-pod", self._fail_pod)
        for name in FIRST_NAMESPACES:
            self.store.create("Namespace", _namespace(name))
        server = web.Server(
            self.requests.handle,
            request_factory=_request,
            handler_cancellation=True,  # a watch ends when its client goes
            access_log=None,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_S)
        await self._runner.setup()
        tls = _tls(settings)
        site = web.TCPSite(self._runner, settings.host, settings.port, ssl_context=tls, backlog=_BACKLOG)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            raise CannotListen(_told(settings, error)) from None
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if tls else 'http'}://{_bracketed(settings.host)}:{port}"
        self._ticker.start()
        for companion in self._companions:
            companion.start()
        return self.url

    async def stop(self) -> None:
        """End watches in good order, stop listening, write out the audit log."""
        for companion in reversed(self._companions):
            await companion.stop()
        await self._ticker.stop()
        if self._runner is not None:
            self.requests.stop()
            await self._runner.cleanup()
            self._runner = None
        if self._audit is not None:
            self._audit.close()
            self._audit = None

    async def __aenter__(self) -> EmbeddedCluster:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _fail_pod(self, method: str, body: bytes) -> dict[str, bool]:
        """POST {"namespace", "name", "reason"?, "message"?}: have a simulated pod fail."""
        asked = decode_json(body)
        if method != "POST" or not isinstance(asked, dict) or self.simulator is None:
            raise bad_request("POST an object with namespace and name")
        where = str(asked.get("namespace", "default")), str(asked.get("name", ""))
        pod = self.store.require("Pod", *where).obj
        reason, message = str(asked.get("reason", "Failed")), str(asked.get("message", ""))
        return {"failing": self.simulator.fail(pod["metadata"]["uid"], reason, message)}

    async def _tick(self) -> None:
        """One clock for all watches, so that none needs a timer of its own."""
        while True:
            await asyncio.sleep(_WATCH_TICK_S)
            for log in self.store.logs.values():
                log.wake()


def _namespace(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_BODY_BYTES_MAX)


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls_cert_file is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file)
    if settings.client_ca_file is not None:
        context.load_verify_locations(settings.client_ca_file)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _told(settings: Settings, error: OSError) -> str:
    where = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return f"the API server cannot listen on {where}: the port is in use"
    return f"the API server cannot listen on {where}: {error.strerror or error}"
