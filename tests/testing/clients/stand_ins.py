"""A pytest plugin for the clients' own tests: an oarlock cluster where they would start one in containers.

kr8s asks the package ``pytest_kind`` for a cluster; the official client's tests ask ``kubernetes.e2e_test.base``, which
is not in its source archive, for the configuration of one. Both names are given modules of ours with what they use.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from oarlock.testing import Cluster

_cluster = Cluster(ready_ms=200, terminate_ms=500)  # the tests look at pods that are not ready yet, and at ending ones


_OF_KIND: Final[list[dict[str, Any]]] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "etcd", "namespace": "kube-system", "labels": {"component": "etcd"}},
        "spec": {"containers": [{"name": "etcd", "image": "etcd"}]},
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "spec": {"ports": [{"port": 443}]},
    },
]


class KindCluster:
    """What kr8s's fixtures use of ``pytest_kind.cluster.KindCluster``."""

    def __init__(self, name: str, **_: Any) -> None:
        self.name = name

    @property
    def kubeconfig_path(self) -> Path:
        return _cluster.kubeconfig

    @property
    def kubectl_path(self) -> Path:
        path = shutil.which("kubectl")
        assert path is not None, "kr8s's tests need kubectl on the PATH"
        return Path(path)

    def create(self) -> None:
        """The cluster is there. Added is what the tests take for granted in one of kind's."""
        for what in _OF_KIND:
            _cluster.create(what)

    def delete(self) -> None:
        """It goes with the run."""

    def kubectl(self, *arguments: str, **options: Any) -> str:
        command = [str(self.kubectl_path), "--kubeconfig", str(self.kubeconfig_path), *arguments]
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def _configuration() -> Any:
    from kubernetes.client import Configuration
    from kubernetes.config import load_kube_config

    configuration = Configuration()
    load_kube_config(str(_cluster.kubeconfig), client_configuration=configuration)
    return configuration


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
    return module


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-cluster", action="store_true", dest="keep_cluster", help="as pytest-kind has it; ignored")


def pytest_load_initial_conftests() -> None:
    """Before the first conftest.py, which already imports from these."""
    _cluster.start()
    _module("pytest_kind")
    _module("pytest_kind.cluster", KindCluster=KindCluster)
    base = _module("kubernetes.e2e_test.base", get_e2e_configuration=_configuration)
    _module("kubernetes.e2e_test", base=base)


def pytest_unconfigure() -> None:
    _cluster.stop()
