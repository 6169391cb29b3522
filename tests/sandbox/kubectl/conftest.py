"""What the tests with a real kubectl share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.kubectl.kubectl_harness import BINARIES, Kubectl, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Without nodes: pods stay Pending, and nothing moves that the test does not move."""
    yield from serving(tmp_path_factory.mktemp("kubectl"))


@pytest.fixture
def server_with_nodes(tmp_path: Path) -> Iterator[Path]:
    yield from serving(tmp_path, "--nodes", "2", "--terminate-ms", "100")


@pytest.fixture(params=BINARIES or ["kubectl"], ids=lambda path: f"{Path(path).parent}")
def kubectl(request: pytest.FixtureRequest, server: Path, tmp_path: Path) -> Kubectl:
    if not BINARIES:
        pytest.fail("CI is set and there is no kubectl")
    client = Kubectl(request.param, server, tmp_path, "default")
    namespace = f"ns-{abs(hash(request.node.name)) % 10**8}"
    client.run("create", "namespace", namespace)
    client.namespace = namespace
    return client
