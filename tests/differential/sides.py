"""The two sides: each a fresh etcd, kube-apiserver and simulated nodes, and then upstream's manager or a fleet.

Of upstream's manager both have the garbage collector, the namespace and the quota controllers.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from tests.realserver.beside import OURS, Beside
from tests.realserver.server import RealServer

OTHERS = ("namespace", "garbagecollector", "resourcequota")
_PATIENT = {"OARLOCK_KUBE_API_QPS": "0", "OARLOCK_REQUEST_TIMEOUT_MS": "30000", "OARLOCK_LEASE_MS": "15000"}
"""Upstream's manager waits for an answer for ever. Where many scenarios play at once an answer may take longer than the
fleet's usual 4 s, and be told as a failed create."""

SHADOW = "shadow"
SideName = Literal["upstream", "fleet"]
SIDES: tuple[SideName, SideName] = ("upstream", "fleet")


class Side:
    """Use as a context manager, from the main thread. `kubeconfig` is that of its server. `shadow`: beside upstream, a
    fleet that runs dry."""

    def __init__(self, name: SideName, folder: Path, *, shadow: bool = False) -> None:
        self.name, self._has_shadow = name, shadow
        self.shadow_redis = ""
        """URL of the shadow's Redis, once it runs."""
        self._folder = folder
        self._ending = ExitStack()

    def __enter__(self) -> Side:
        try:
            server = self._ending.enter_context(RealServer(self._folder / "server"))
            self.kubeconfig = server.kubeconfig
            beside = Beside(self._folder, self.kubeconfig, called=self.name, settings=_PATIENT)
            self._beside = self._ending.enter_context(beside)
            controllers = (*OTHERS, *OURS) if self.name == "upstream" else OTHERS
            beside.watch(server.run_controllers(*controllers))
            beside.start_nodes("--count", "0", "--schedule", "--gone-node-ms", "300", "--heartbeat-s", "0")
            if self.name == "fleet":
                beside.start_fleet()
            elif self._has_shadow:
                self.shadow_redis = beside.start_fleet("--dry-run", "--fleet-id", SHADOW).url("admin")
        except BaseException:
            self._ending.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def check(self) -> None:
        """Raises Broken when one of its programs has ended."""
        self._beside.check()
