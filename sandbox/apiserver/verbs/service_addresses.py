"""Addresses of Services: every new one gets its own, as if there were a network behind it.

Upstream: pkg/registry/core/service/storage/alloc.go. IPv4 only, and no ports of nodes: nothing here forwards what a
client sends to these addresses.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError, internal_error, invalid
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.store.events import Event
from oarlock.sandbox.apiserver.store.store import Store

Obj = dict[str, Any]

NETWORK: Final = ipaddress.IPv4Network("10.96.0.0/16")
_FIRST: Final = 11  # the addresses before it are those that clusters give to DNS and their own API
_HEADLESS: Final = "None"


class ServiceAddresses:
    """Which addresses the Services of a store have."""

    def __init__(self, store: Store) -> None:
        self._holders: dict[str, tuple[str, str]] = {}
        self._next = _FIRST
        store.subscribe(self._seen)

    def given(self, kind: Kind, service: Obj) -> Obj:
        """A new Service with its address. Raises ApiError 422 where the address it names is held or not ours."""
        if kind.name != "Service":
            return service
        spec = service.get("spec") or {}
        asked = spec.get("clusterIP") or ""
        if spec.get("type") == "ExternalName":
            return service
        if asked and asked != _HEADLESS:
            self._check(service, asked)
        address = asked or self._free()
        families = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
        return {**service, "spec": {**families, **spec, "clusterIP": address, "clusterIPs": [address]}}

    def _check(self, service: Obj, asked: str) -> None:
        why = ""
        try:
            if ipaddress.IPv4Address(asked) not in NETWORK:
                why = f"failed to allocate IP {asked}: the provided IP is not in the valid range. "
                why += f"The range of valid IPs is {NETWORK}"
        except ValueError:
            why = f"must be empty, '{_HEADLESS}', or a valid IP address"
        if not why and asked in self._holders:
            why = f"failed to allocate IP {asked}: provided IP is already allocated"
        if why:
            errors = [FieldError.invalid("spec.clusterIPs", [asked], why)]
            raise invalid("Service", "", service["metadata"].get("name", ""), errors)

    def _free(self) -> str:
        for _ in range(NETWORK.num_addresses):
            address = str(NETWORK[self._next])
            self._next = self._next + 1 if self._next < NETWORK.num_addresses - 2 else _FIRST
            if address not in self._holders:
                return address
        raise internal_error(f"failed to allocate a serviceIP: the range {NETWORK} is full")

    def _seen(self, event: Event) -> None:
        if event.kind.name != "Service":
            return
        if event.old is not None:
            self._holders.pop((event.old.get("spec") or {}).get("clusterIP", ""), None)
        address = (event.obj.get("spec") or {}).get("clusterIP")
        if event.type != "DELETED" and address and address != _HEADLESS:
            self._holders[address] = (event.namespace, event.name)
