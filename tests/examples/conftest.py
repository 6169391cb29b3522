"""One cluster for all tests of the examples: each example's controller runs in it, beside the built-in ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.operators.dnsrecord import dnsrecord
from examples.operators.ephemeralvolumeclaim import ephemeralvolumeclaim
from examples.operators.nightly import nightly
from examples.operators.quotaguard import quotaguard
from examples.operators.replicaset import podset
from examples.operators.website import website
from oarlock.testing import Cluster
from tests import ROOT
from tests.examples.dns_service import DnsService, serving

OPERATORS: Path = ROOT / "examples" / "operators"


@pytest.fixture(scope="module")
def cluster_of_session() -> Iterator[Cluster]:
    """Only while these tests run: a process knows one set of controllers at a time, and other tests have others."""
    with Cluster(operator=[website, dnsrecord, nightly, quotaguard, podset, ephemeralvolumeclaim]) as cluster:
        yield cluster


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Iterator[DnsService]:
    with serving() as service:
        monkeypatch.setenv("DNS_API", service.url)
        yield service
