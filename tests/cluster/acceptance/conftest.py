"""Fixtures of the acceptance suite: one stage a run, a namespace a test, and on demand a node of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from tests.cluster.acceptance.stages import Stage, stage
from tests.e2e.api_calls import delete_namespace
from tests.e2e.e2e_kubectl import Kubectl, need_kubectl, until
from tests.realserver.programs import put_on_path

if os.environ.get("OARLOCK_TEST_SERVER") == "real" and not os.environ.get("OARLOCK_TEST_KUBECONFIG"):
    put_on_path("kubectl")

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    need_kubectl()
    with stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.fixture(scope="package")
def everywhere(cluster: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """kubectl without a namespace. In the end, every namespace of the suite is gone."""
    client = Kubectl(cluster.kubeconfig, tmp_path_factory.mktemp("home"))
    yield client
    if os.environ.get("OARLOCK_TEST_KUBECONFIG"):
        client.run("delete", "namespace", "-l", "oarlock-test", "--wait=false")
        until(lambda: not client.items("namespaces", "-l", "oarlock-test"), 120, "the namespaces of the suite are gone")


@pytest.fixture
def kubectl(everywhere: Kubectl) -> Iterator[Kubectl]:
    inside = everywhere.inside(f"oarlock-{os.getpid()}-{next(_numbers)}", **{"oarlock-test": "yes"})
    yield inside
    delete_namespace(inside.kubeconfig, inside.namespace)


@pytest.fixture
def node(cluster: Stage, kubectl: Kubectl) -> Iterator[str]:
    """A node of the test's own, labelled own=<namespace>."""
    name = f"own-{kubectl.namespace}"
    cluster.change_nodes("add", name, "--label", f"own={kubectl.namespace}")
    yield name
    kubectl.run("delete", "node", name, "--ignore-not-found")
