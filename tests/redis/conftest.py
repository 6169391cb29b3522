"""Rigs of real servers, one of a kind a module, and certificates made for the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis.certificates import Certificates
from tests.redis.cluster_rig import ClusterRig
from tests.redis.real_servers import RealServer, started
from tests.redis.sentinel_rig import SentinelRig


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    """One server of the newest kind here, with the users of a fleet."""
    one = RealServer(tmp_path / "redis")
    try:
        started(one)
        yield one
    finally:
        one.kill()


@pytest.fixture
def sentinels(tmp_path: Path) -> Iterator[SentinelRig]:
    rig = SentinelRig(tmp_path)
    try:
        yield rig
    finally:
        rig.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterRig]:
    rig = ClusterRig(tmp_path)
    try:
        yield rig
    finally:
        rig.close()
