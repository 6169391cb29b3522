"""A ServiceAccount `default` in every namespace, also after somebody deletes it.

Upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go. It is there with the namespace itself, so that
nobody has to wait for it.

Wiring: `ServiceAccounts(store)`, then `start()` inside the running loop and `await stop()`.
"""

from __future__ import annotations

from typing import Final

from oarlock.sandbox.apiserver.loops.background import StoreFollower
from oarlock.sandbox.apiserver.store.events import Event

NAME: Final = "default"
_KIND: Final = "ServiceAccount"


class ServiceAccounts(StoreFollower):
    """Creates them with the event that asks for one."""

    _work = ()

    def _begin(self) -> None:
        for namespace in self._store.list("Namespace"):
            self._ensure(namespace["metadata"]["name"])

    def _seen(self, event: Event) -> None:
        if event.kind.name == "Namespace" and event.type == "ADDED":
            self._ensure(event.name)
        elif event.kind.name == _KIND and event.type == "DELETED" and event.name == NAME:
            self._ensure(event.namespace)

    def _ensure(self, namespace: str) -> None:
        owner = self._store.get("Namespace", "", namespace)
        if owner is None or "deletionTimestamp" in owner["metadata"] or self._store.get(_KIND, namespace, NAME):
            return
        account = {"apiVersion": "v1", "kind": _KIND, "metadata": {"name": NAME, "namespace": namespace}}
        self._store.create(_KIND, account)
