"""Put objects into a cluster: missing ones are created, those that are there patched, much as `kubectl apply` does.

Only for what a person brings once: a write that fails is not repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import orjson

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client
from oarlock.cluster.resources import NAMESPACES, Resource
from oarlock.sandbox.apiserver.kinds.kinds import KINDS
from oarlock.sandbox.manifests.checks import Item

IN_FLIGHT = 50


class NotApplied(Exception):
    """The server refused an object; one line naming it and the reason."""


async def apply(config: ClusterConfig, items: Sequence[Item]) -> None:
    """Apply all: missing namespaces, then the objects in order. Raises NotApplied at the first refusal."""
    async with Client(config, role="up") as client:
        brought = {item.name for item in items if item.kind.name == "Namespace"}
        wanted = dict.fromkeys(item.namespace for item in items if item.namespace)
        made = [_namespace(name) for name in wanted if name not in brought]
        await _all(client, [*made, *(item for item in items if item.kind.name == "Namespace")])
        for wave in _waves([item for item in items if item.kind.name != "Namespace"]):
            await _all(client, wave)


def _namespace(name: str) -> Item:
    kind = KINDS["Namespace"]
    return Item(kind, "", name, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}})


def _waves(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Parts that may go at the same time: the same object never stands twice in one."""
    wave: list[Item] = []
    seen: set[tuple[str, str, str]] = set()
    for item in items:
        mark = item.kind.name, item.namespace, item.name
        if mark in seen or len(wave) == IN_FLIGHT:
            yield wave
            wave, seen = [], set()
        wave.append(item)
        seen.add(mark)
    if wave:
        yield wave


async def _all(client: Client, items: Sequence[Item]) -> None:
    answers = await asyncio.gather(*(_one(client, item) for item in items))
    for item, answer in zip(items, answers, strict=True):
        if not answer.ok:
            raise NotApplied(f"{item.title}: {answer.message}")


async def _one(client: Client, item: Item) -> Answer:
    kind = item.kind
    resource = Resource(kind.api_version, kind.plural, kind.name, kind.namespaced)
    body = orjson.dumps(item.obj)
    answer = await client.create(resource, item.namespace, body)
    if answer.code != 409 or answer.status is None or answer.status.reason != "AlreadyExists":
        return answer
    if resource.plural == NAMESPACES.plural and item.obj.keys() <= {"apiVersion", "kind", "metadata"}:
        return await client.get(resource, "", item.name)
    return await client.patch(resource, item.namespace, item.name, body)
