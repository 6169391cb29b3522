"""The admin endpoint for faults: GET lists them, PUT replaces them, POST adds one, DELETE clears them."""

from __future__ import annotations

import time
from typing import Any

from oarlock.sandbox.apiserver.errors import ApiError, bad_request
from oarlock.sandbox.apiserver.http.faults import Action, Fault, Faults, fault_from
from oarlock.sandbox.apiserver.http.negotiation import decode_json
from oarlock.sandbox.apiserver.store.store import Store


class FaultDesk:
    """Puts faults in force, and carries out those that take effect at once."""

    def __init__(self, faults: Faults, store: Store) -> None:
        self._faults = faults
        self._store = store

    async def serve(self, method: str, body: bytes) -> dict[str, Any]:
        """The faults as they are afterwards. Raises ApiError 400 or 405."""
        match method:
            case "GET":
                pass
            case "PUT":
                self._replace(decode_json(body))
            case "POST":
                self.inject(fault_from(decode_json(body)))
            case "DELETE":
                self._faults.clear()
            case _:
                raise ApiError(405, "MethodNotAllowed", "faults take GET, PUT, POST and DELETE")
        return self._faults.describe()

    def inject(self, fault: Fault) -> None:
        """Put a fault in force now."""
        self._faults.add(fault, time.monotonic())
        if fault.action is Action.CUT_HISTORY:
            fault.applied += 1
            for name, history in self._store.logs.items():
                plural = self._store.kinds[name].plural
                if "*" in fault.resources or plural in fault.resources:
                    history.cut(self._store.rv)

    def _replace(self, asked: Any) -> None:
        listed = asked.get("faults") if isinstance(asked, dict) else None
        seed = asked.get("seed", self._faults.seed) if isinstance(asked, dict) else None
        if not isinstance(listed, list) or not isinstance(seed, int):
            raise bad_request('PUT {"faults": [...], "seed": NUMBER}')
        fresh = [fault_from(spec) for spec in listed]
        self._faults.clear()
        self._faults.reseed(seed)
        for fault in fresh:
            self.inject(fault)
