"""The fixtures of `pip install oarlock[testing]`. Loaded by every pytest of the environment, so it imports nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from oarlock.testing import Cluster


@pytest.fixture(scope="session")
def cluster_options() -> dict[str, Any]:
    """Options of the session's cluster: override it in a conftest.py, as in ``return {"nodes": 10}``."""
    return {}


@pytest.fixture(scope="session")
def cluster_of_session(cluster_options: dict[str, Any]) -> Iterator[Cluster]:
    """One cluster for all tests of this process: what they share is its default namespace, nodes and clock."""
    from oarlock.testing import Cluster  # noqa: PLC0415 - costs half a second, so only where a test asks for it

    with Cluster(**cluster_options) as cluster:
        yield cluster


@pytest.fixture
def cluster(cluster_of_session: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The session's cluster, with a new namespace of this test's own that is deleted after it."""
    with cluster_of_session.fresh(request.node.name) as cluster:
        yield cluster
