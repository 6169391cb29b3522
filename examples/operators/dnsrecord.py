"""A DNS record: an effect outside the cluster, which no API server undoes or repeats.

A worker may be killed between the effect and the news of it. Then another one does the effect again: effects are **at
least once**. So each request carries an idempotency key, the object's UID and generation, by which the other side
knows the repetition. The finalizer keeps the object until its record is gone.

The address of the DNS service comes from DNS_API. The example's test serves one: `tests/examples/dns_service.py`.
"""

import json
import os
import urllib.error
import urllib.request
from typing import Annotated, Any, Literal

from msgspec import Meta

import oarlock

TIMEOUT_S = 5
"""Well below the limit of a turn, 45 s."""


class DNSRecordSpec(oarlock.Struct):
    value: Annotated[str, Meta(min_length=1)]
    type: Literal["A", "AAAA", "CNAME", "TXT"] = "A"
    ttl: Annotated[int, Meta(ge=30)] = 300


class DNSRecordStatus(oarlock.Struct):
    published_generation: int = 0
    value: str = ""


@oarlock.resource("dns.example.com/v1", short_name="dns", columns={"Type": "spec.type", "Published": "status.value"})
class DNSRecord(oarlock.Object):
    """A record under the object's own name. So it cannot be renamed, and no old name can be forgotten outside."""

    spec: DNSRecordSpec
    status: DNSRecordStatus | None = None


@oarlock.steps(DNSRecord, finalizer="dns.example.com/record", every_s=300)
def dnsrecord(record: DNSRecord, ctx: oarlock.Context) -> None:
    """Publish it, and again every five minutes: someone may have changed it outside."""
    ctx.still_mine()  # raises LostClaim: the object is another worker's by now
    call("PUT", record.name, ctx.idempotency_key, body(record))
    ctx.status(DNSRecordStatus(published_generation=record.metadata.generation, value=record.spec.value))


@dnsrecord.finalize
def unpublish(record: DNSRecord, ctx: oarlock.Context) -> None:
    """Before the object goes. A record that is gone already is as good."""
    ctx.still_mine()
    call("DELETE", record.name, ctx.idempotency_key)


def body(record: DNSRecord) -> dict[str, Any]:
    spec = record.spec
    return {"type": spec.type, "value": spec.value, "ttl": spec.ttl, "owner": record.metadata.uid}


def call(verb: str, name: str, key: str, content: dict[str, Any] | None = None) -> None:
    """One request. Raises Never for what no repetition mends, Later for what may pass."""
    request = urllib.request.Request(
        f"{os.environ['DNS_API']}/records/{name}",
        method=verb,
        data=json.dumps(content).encode() if content else None,
        headers={"Idempotency-Key": key, "Content-Type": "application/json"},
    )
    try:
        urllib.request.urlopen(request, timeout=TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        if verb == "DELETE" and error.code == 404:
            return
        if error.code in (400, 403, 422):
            raise oarlock.Never(f"the DNS service refuses {name}: {error.code} {error.reason}") from error
        raise oarlock.Later(seconds=5, reason=f"the DNS service answers {error.code}") from error
    except OSError as error:
        raise oarlock.Later(seconds=5, reason=f"the DNS service cannot be reached: {error}") from error
