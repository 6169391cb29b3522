"""Define the kinds of a user's types in a cluster, and tell which kinds it does not serve yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from typing import Any

import orjson

from oarlock.cluster.client import Client
from oarlock.cluster.listing import ListError
from oarlock.cluster.resources import Resource
from oarlock.sandbox.manifests.applying import NotApplied

DEFINITIONS = Resource(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
MANAGER = "oarlock"
LOOK_EVERY_S = 0.05
ESTABLISHED_WITHIN_S = 15.0


async def define(client: Client, definitions: Iterable[dict[str, Any]]) -> None:
    """Apply CustomResourceDefinitions and wait until the server serves them. Raises NotApplied."""
    names = []
    for definition in definitions:
        name = definition["metadata"]["name"]
        answer = await client.apply(DEFINITIONS, "", name, orjson.dumps(definition), manager=MANAGER, force=True)
        if not answer.ok:
            raise NotApplied(f"CustomResourceDefinition {name}: {answer.message}")
        names.append(name)
    for name in names:
        await _established(client, name)


async def _established(client: Client, name: str) -> None:
    until_s = asyncio.get_running_loop().time() + ESTABLISHED_WITHIN_S
    while True:
        answer = await client.get(DEFINITIONS, "", name)
        conditions = answer.object().get("status", {}).get("conditions", []) if answer.ok else []
        if any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions):
            return
        if asyncio.get_running_loop().time() > until_s:
            said = "; ".join(str(each.get("message", "")) for each in conditions) or answer.message
            raise NotApplied(f"CustomResourceDefinition {name} is not served after {ESTABLISHED_WITHIN_S:g} s: {said}")
        await asyncio.sleep(LOOK_EVERY_S)


async def not_served(client: Client, resources: Sequence[Resource]) -> list[Resource]:
    """Those that the server answers with 404. Of one that it does not let us list nothing is known."""
    missing = []
    for resource in resources:
        try:
            async with aclosing(client.list_pages(resource, limit=1)) as pages:
                await anext(pages)
        except ListError as error:
            if error.answer.code == 404:
                missing.append(resource)
    return missing
