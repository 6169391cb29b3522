"""Acting on a cluster and watching objects of one kind until the last of them says what it should."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing

from benchmarks.report import Unfit
from benchmarks.tree import Tree
from cluster.resources import Resource

LIFE_S = 3600.0
"""Of a watch: none of these is gone on with."""


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
        async with aclosing(tree.client.watch_batches(resource, position, life_s=LIFE_S)) as batches:
            async for batch in batches:
                for event in batch:
                    if event.type == "BOOKMARK":
                        continue
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
