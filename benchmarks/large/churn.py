"""Pods of a large cluster are deleted at an even pace: how soon does each owner have another one?"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from contextlib import aclosing

import orjson

from benchmarks.report import Unfit
from benchmarks.tree import NAMESPACE, Tree
from benchmarks.watching import follow
from oarlock.cluster.listing import Page
from oarlock.cluster.resources import PODS

WITHIN_S = 30.0
"""After the last deletion all pods have to be replaced."""


async def churn(tree: Tree, per_s: float, seconds: float) -> list[float]:
    """Milliseconds from the event of a pod that is gone to that of its owner's next pod, of each pod deleted. Pods
    without an owner that replaces them are left alone. Raises Unfit where some were not replaced.
    """
    wanted = int(per_s * seconds)
    names = await _victims(tree, wanted)
    position = (await _first_page(tree)).rv
    gone: dict[str, deque[float]] = defaultdict(deque)
    took_ms: list[float] = []
    done = asyncio.Event()

    async def watch() -> None:
        async with aclosing(follow(tree.client, PODS, position)) as events:
            async for event in events:
                if event.type == "MODIFIED":
                    continue
                owner = orjson.loads(event.object)["metadata"]["ownerReferences"][0]["uid"]
                if event.type == "DELETED":
                    gone[owner].append(time.monotonic())
                elif gone[owner]:
                    took_ms.append((time.monotonic() - gone[owner].popleft()) * 1e3)
                    if len(took_ms) == len(names):
                        done.set()

    watching = asyncio.create_task(watch())
    try:
        begun_s, deletions = time.monotonic(), set()
        for number, (name, uid) in enumerate(names):
            await asyncio.sleep(max(0.0, begun_s + number / per_s - time.monotonic()))
            deletion = asyncio.create_task(tree.client.delete(PODS, NAMESPACE, name, uid=uid, grace_s=0))
            deletions.add(deletion)
            deletion.add_done_callback(deletions.discard)
        await asyncio.wait_for(done.wait(), WITHIN_S)
    except TimeoutError:
        raise Unfit(f"{len(names) - len(took_ms)} of {len(names)} deleted pods were not replaced") from None
    finally:
        watching.cancel()
    return took_ms


async def _victims(tree: Tree, count: int) -> list[tuple[str, str]]:
    """Names and uids of so many pods of ReplicaSets."""
    found: list[tuple[str, str]] = []
    async with aclosing(tree.client.list_pages(PODS, namespace=NAMESPACE)) as pages:
        async for page in pages:
            for item in page.items:
                meta = orjson.loads(item)["metadata"]
                if meta["ownerReferences"][0]["kind"] == "ReplicaSet":
                    found.append((meta["name"], meta["uid"]))
            if len(found) >= count:
                break
    if len(found) < count:
        raise Unfit(f"only {len(found)} pods can be deleted, not {count}")
    return found[:count]


async def _first_page(tree: Tree) -> Page:
    async with aclosing(tree.client.list_pages(PODS, limit=1)) as pages:
        return await anext(pages)
