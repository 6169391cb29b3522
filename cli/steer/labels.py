"""Which objects bear labels: asked of the API server, as the cache has no labels of most kinds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from oarlock.cli.nodes.node_api import cluster_config, unusable
from oarlock.cli.problems import InputProblem
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.cluster.listing import ListError
from oarlock.controllers.entries import Watched
from oarlock.workers.process.kinds import cluster_resource


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta


_object = msgspec.json.Decoder(_Object)


def labelled(
    resources: Iterable[Watched[Any]],
    selector: str,
    namespace: str | None,
    kubeconfig: str | None,
    state_dir: Path | None,
) -> dict[str, set[str]]:
    """Resource -> the keys of its objects that a label selector matches, in Kubernetes' syntax. Raises InputProblem."""
    asked = _all(cluster_config(kubeconfig, state_dir), list(resources), selector, namespace or "")
    found: dict[str, set[str]] = uvloop.run(asked)
    return found


async def _all(
    config: ClusterConfig, resources: list[Watched[Any]], selector: str, namespace: str
) -> dict[str, set[str]]:
    async with Client(config, role="requeue") as client:
        return {each.resource: await _keys(client, config, each, selector, namespace) for each in resources}


async def _keys(
    client: Client, config: ClusterConfig, resource: Watched[Any], selector: str, namespace: str
) -> set[str]:
    found: set[str] = set()
    within = namespace if resource.namespaced else ""
    try:
        async for page in client.list_pages(cluster_resource(resource), label_selector=selector, namespace=within):
            if page.first:
                found.clear()
            for item in page.items:
                meta = _object.decode(item).metadata
                found.add(f"{meta.namespace}/{meta.name}" if resource.namespaced else meta.name)
    except ListError as error:
        if error.answer.code == 400:
            raise InputProblem(f"--selector {selector!r}: {error.answer.message}") from None
        raise unusable(config, error.answer) from None
    return found
