"""What upstream's events tell: whether the creates of an owner are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import orjson

from oarlock.cli.problems import InputProblem
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.listing import ListError, list_all
from oarlock.cluster.reader import Reader
from oarlock.cluster.resources import EVENTS


def told_of_refusals(config: ClusterConfig, namespaces: Iterable[str]) -> set[str]:
    """UIDs of the objects that an event FailedCreate is about. Raises InputProblem where events cannot be read."""
    return asyncio.run(_told(config, sorted(namespaces)))


async def _told(config: ClusterConfig, namespaces: Iterable[str]) -> set[str]:
    found: set[str] = set()
    async with Reader(config, role="shadow report") as reader:
        for namespace in namespaces:
            pages = reader.list_pages(EVENTS, namespace=namespace, field_selector="reason=FailedCreate")
            try:
                _, items = await list_all(pages)
            except ListError as error:
                raise InputProblem(f"--kubeconfig: {error}; leave it out, or give one that may list events") from None
            found.update(orjson.loads(item)["involvedObject"].get("uid", "") for item in items)
    return found
