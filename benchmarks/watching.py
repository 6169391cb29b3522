"""Acting on a cluster and watching objects of one kind until the last of them says what it should."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing

from benchmarks.report import Unfit
from benchmarks.tree import Tree
from oarlock.cluster.client import Client
from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.resources import Resource
from oarlock.cluster.watch import Broken, Deaf, WatchError

LIFE_S = 3600.0
"""Asked for, so that a watch seldom ends while something is timed. The server may end it all the same."""
AGAIN_S = 0.05
"""Until a watch that ended otherwise than in order is begun again."""


async def follow(client: Client, resource: Resource, position: str) -> AsyncGenerator[WatchEvent, None]:
    """Every event after ``position``, bookmarks left out. A watch that ends is gone on with from its last event.

    Raises Unfit where nobody can: the server refuses the watch, or keeps the history no longer.
    """
    while True:
        try:
            async with aclosing(client.watch_batches(resource, position, life_s=LIFE_S)) as batches:
                async for batch in batches:
                    for event in batch:
                        position = event.rv or position
                        if event.type != "BOOKMARK":
                            yield event
        except WatchError as error:
            if not isinstance(error, Deaf | Broken) or getattr(error, "answer", None) is not None:
                raise Unfit(f"the watch of {resource.plural} cannot go on: {error}") from error
            await asyncio.sleep(AGAIN_S)


def until_settled(
    tree: Tree,
    resource: Resource,
    names: Iterable[str],
    settled: Callable[[bytes], tuple[str, bool]],
    act: Callable[[], object],
    limit_s: float,
) -> float:
    """Seconds from just before ``act`` to the event with which the last of ``names`` had settled.

    ``settled``: name of the object in this JSON, and whether it has; one that had and has no longer is waited for
    again. Events from before ``act`` do not count. Raises Unfit after ``limit_s``.
    """
    waiting = set(names)

    async def watch(position: str) -> None:
        async with aclosing(follow(tree.client, resource, position)) as events:
            async for event in events:
                name, done = settled(event.object)
                if done:
                    waiting.discard(name)
                elif name in known:
                    waiting.add(name)
                if not waiting:
                    return

    known = frozenset(waiting)
    watching = asyncio.run_coroutine_threadsafe(watch(tree.position(resource)), tree.io.loop)
    began = time.monotonic()
    act()
    try:
        watching.result(limit_s)
    except TimeoutError:
        watching.cancel()
        raise Unfit(f"{len(waiting)} of {len(known)} {resource.plural} had not settled after {limit_s:.0f} s") from None
    return time.monotonic() - began
