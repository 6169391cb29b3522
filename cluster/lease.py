"""A Lease as a compare-and-swap cell: what was read can be replaced only while nobody else has replaced it.

The server's check of the resourceVersion (and of the name, for the first write) is the whole mechanism.
"""

from enum import StrEnum
from typing import Any

import msgspec
import orjson

from oarlock.cluster.answer import NOT_SENT, TOO_LATE, Answer
from oarlock.cluster.http.transport import Transport
from oarlock.cluster.resources import LEASES
from oarlock.cluster.timestamps import micro_text, unix_ms


class LeaseSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a Lease says. Times in unix ms (0 = absent); annotations carry whatever else it must name."""

    holder: str = ""
    duration_s: int = 0
    acquired_ms: int = 0
    renewed_ms: int = 0
    transitions: int = 0
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class HeldLease(msgspec.Struct, frozen=True):
    """A Lease as read. `raw`: the whole object, so that a swap keeps the fields that others wrote."""

    resource_version: str
    spec: LeaseSpec
    raw: bytes


class Swap(StrEnum):
    """The result of a swap."""

    WON = "won"
    LOST = "lost"  # another process wrote it since: read again
    UNKNOWN = "unknown"  # may have been written: read again and look for our own mark
    REFUSED = "refused"  # rights, validation or throttling: not written


class LeaseError(Exception):
    """A Lease could not be read."""


class LeaseCell:
    """One Lease by name. Takes no rate-limit tokens, so that the fleet's coordination never waits for its work."""

    def __init__(self, transport: Transport, namespace: str, name: str) -> None:
        self._transport, self.namespace, self.name = transport, namespace, name

    async def read(self) -> HeldLease | None:
        """The Lease as it is now, None if there is none. Raises LeaseError if the server does not say."""
        answer = await self._transport.read(LEASES.item(self.namespace, self.name))
        if answer.code == 404 and answer.status is not None:
            return None
        if not answer.ok:
            raise LeaseError(f"cannot read Lease {self.namespace}/{self.name}: {answer.message}")
        return held(answer)

    async def swap(self, before: HeldLease | None, after: LeaseSpec) -> tuple[Swap, HeldLease | None, Answer]:
        """Write `after` if the Lease is still `before` (None: if there is none).

        Returns (result, the new Lease if WON, the answer). Nothing is repeated.
        """
        body = lease_body(self.namespace, self.name, before, after)
        if before is None:
            answer = await self._transport.write("POST", LEASES.collection(self.namespace), body)
        else:
            answer = await self._transport.write("PUT", LEASES.item(self.namespace, self.name), body)
        if answer.ok:
            try:
                return Swap.WON, held(answer), answer
            except LeaseError:
                return Swap.UNKNOWN, None, answer
        if answer.status is not None and answer.code in {404, 409}:
            # A 404 to the first write means that the namespace is missing; to a later one, a deleted Lease.
            missing_namespace = answer.code == 404 and before is None
            return (Swap.REFUSED if missing_namespace else Swap.LOST), None, answer
        certain = answer.code in {NOT_SENT, TOO_LATE, 429} or (answer.status is not None and 400 <= answer.code < 500)
        return (Swap.REFUSED if certain else Swap.UNKNOWN), None, answer


def held(answer: Answer) -> HeldLease:
    """The Lease in an answer. Raises LeaseError if there is none in it."""
    try:
        lease = answer.object()
        if lease.get("kind") != LEASES.kind:
            raise ValueError("another kind")
        spec = lease.get("spec") or {}
        metadata = lease["metadata"]
        return HeldLease(
            metadata["resourceVersion"],
            LeaseSpec(
                holder=spec.get("holderIdentity") or "",
                duration_s=spec.get("leaseDurationSeconds") or 0,
                acquired_ms=unix_ms(spec.get("acquireTime")),
                renewed_ms=unix_ms(spec.get("renewTime")),
                transitions=spec.get("leaseTransitions") or 0,
                annotations=metadata.get("annotations") or {},
            ),
            answer.body,
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise LeaseError(f"not a Lease: {answer.body[:120]!r}") from error


def lease_body(namespace: str, name: str, before: HeldLease | None, after: LeaseSpec) -> bytes:
    """JSON of the Lease to write: `before` with its resourceVersion and the fields of `after` in it."""
    lease: dict[str, Any] = orjson.loads(before.raw) if before is not None else {}
    lease |= {"apiVersion": LEASES.api_version, "kind": LEASES.kind}
    metadata = lease.setdefault("metadata", {})
    metadata |= {"name": name, "namespace": namespace, "annotations": after.annotations}
    spec: dict[str, Any] = {**(lease.get("spec") or {}), "leaseTransitions": after.transitions}
    for key, value in (
        ("holderIdentity", after.holder),
        ("leaseDurationSeconds", after.duration_s),
        ("acquireTime", micro_text(after.acquired_ms) if after.acquired_ms else None),
        ("renewTime", micro_text(after.renewed_ms) if after.renewed_ms else None),
    ):
        if value:
            spec[key] = value
        else:
            spec.pop(key, None)
    lease["spec"] = spec
    return orjson.dumps(lease)
