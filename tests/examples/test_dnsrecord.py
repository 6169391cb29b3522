"""An effect outside: what is asked of the service, under which key, and what its refusals lead to."""

from __future__ import annotations

import pytest

import oarlock
from examples.operators.dnsrecord import DNSRecord, DNSRecordSpec, body, call, dnsrecord, unpublish
from oarlock.testing import Cluster, FakeContext, gone
from tests.examples.conftest import OPERATORS
from tests.examples.dns_service import DnsService

NAME = "www.example.com"


def test_what_is_published() -> None:
    record = DNSRecord(metadata=oarlock.Meta(name=NAME, uid="u1"), spec=DNSRecordSpec(value="192.0.2.10"))
    assert body(record) == {"type": "A", "value": "192.0.2.10", "ttl": 300, "owner": "u1"}


@pytest.mark.parametrize(
    ("code", "error", "after"),
    [(503, oarlock.Later, 5000), (429, oarlock.Later, 5000), (422, oarlock.Never, None), (403, oarlock.Never, None)],
)
def test_refusals(dns: DnsService, code: int, error: type[Exception], after: float | None) -> None:
    dns.refuse.append(code)
    with pytest.raises(error, match=str(code)) as raised:
        call("PUT", NAME, "k", {"value": "v"})
    assert getattr(raised.value, "after_ms", None) == after


def test_a_service_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNS_API", "http://127.0.0.1:1")
    with pytest.raises(oarlock.Later, match="cannot be reached"):
        call("DELETE", NAME, "k")


def test_to_delete_what_is_gone_is_no_error(dns: DnsService) -> None:
    call("DELETE", NAME, "k")
    assert dns.requests == [("DELETE", NAME, "k")]


def www() -> DNSRecord:
    return DNSRecord(metadata=oarlock.Meta(name=NAME, uid="u1", generation=3), spec=DNSRecordSpec(value="v"))


def test_a_run_publishes_under_its_own_key_and_reports(dns: DnsService) -> None:
    ctx = FakeContext(dnsrecord, www())
    dnsrecord(www(), ctx)
    assert dns.requests == [("PUT", NAME, "u1-3")]
    assert ctx.did.status == {"publishedGeneration": 3, "value": "v"}


def test_a_run_that_lost_its_object_does_nothing_outside(dns: DnsService) -> None:
    for function in (dnsrecord, unpublish):
        with pytest.raises(oarlock.LostClaim):
            function(www(), FakeContext(dnsrecord, www(), lost=True))
    assert dns.requests == []


def test_what_was_published_is_undone(dns: DnsService) -> None:
    dnsrecord(www(), FakeContext(dnsrecord, www()))
    unpublish(www(), FakeContext(dnsrecord, www()))
    assert dns.records == {}


def test_in_a_cluster(cluster: Cluster, dns: DnsService) -> None:
    made = cluster.create(OPERATORS / "dnsrecord.yaml")
    uid = made["metadata"]["uid"]
    cluster.wait(f"dnsrecord/{NAME}", lambda it: it.get("status", {}).get("publishedGeneration") == 1)
    assert dns.records[NAME] == {"type": "A", "value": "192.0.2.10", "ttl": 300, "owner": uid}

    cluster.patch(f"dnsrecord/{NAME}", {"spec": {"value": "192.0.2.11"}})
    cluster.wait(f"dnsrecord/{NAME}", lambda it: it["status"]["value"] == "192.0.2.11")
    assert dns.records[NAME]["value"] == "192.0.2.11"

    cluster.delete(f"dnsrecord/{NAME}")
    cluster.wait(f"dnsrecord/{NAME}", gone)
    assert dns.records == {}
    keys = {key for verb, _, key in dns.requests if verb == "PUT"}
    assert keys == {f"{uid}-1", f"{uid}-2"}, "one key an effect, however often it was repeated"
