"""Ready-made clients of the libraries that Python people use, where they are installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


class NotInstalled(ImportError):
    """A client library is absent; the text names the package to install."""


def _imported(module: str, package: str, name: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise  # it is there, and something that it needs is not
        raise NotInstalled(f"cluster.{name} needs the package {package}: pip install {package}") from None


def kubernetes(kubeconfig: Path) -> Any:
    """An ``ApiClient`` of the official client, for ``kubernetes.client.CoreV1Api(...)`` and its like."""
    config = _imported("kubernetes.config", "kubernetes", "kubernetes")
    return config.new_client_from_config(config_file=str(kubeconfig))


def kr8s(kubeconfig: Path, namespace: str) -> Any:
    """The synchronous API object of kr8s."""
    return _imported("kr8s", "kr8s", "kr8s").api(kubeconfig=str(kubeconfig), namespace=namespace)


def lightkube(kubeconfig: Path, namespace: str) -> Any:
    """A ``lightkube.Client``."""
    library = _imported("lightkube", "lightkube", "lightkube")
    return library.Client(config=library.KubeConfig.from_file(str(kubeconfig)), namespace=namespace)
