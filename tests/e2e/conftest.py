"""Fixtures of the tests with kubectl: one `oarlock up` a module, a namespace a test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.e2e.e2e_helpers import RunningUp
from tests.e2e.e2e_kubectl import NODES, Kubectl, kubectl_of, need_kubectl

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUp]:
    need_kubectl()
    running = RunningUp(tmp_path_factory.mktemp("up") / "state", "--nodes", str(NODES))
    yield running
    running.stop()


@pytest.fixture
def kubectl(up: RunningUp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    inside = kubectl_of(up, tmp_path_factory.mktemp("home")).inside(f"t{next(_numbers)}")
    yield inside
    inside.run("delete", "namespace", inside.namespace, "--wait=false")
