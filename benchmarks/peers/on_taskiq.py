"""taskiq with Redis streams: entries are acknowledged after the job; no results are kept."""

import asyncio

from taskiq_redis import RedisStreamBroker

from benchmarks.peers.counted import count_of_this_worker, redis_url

broker = RedisStreamBroker(redis_url())
_count = count_of_this_worker()


@broker.task
async def noop() -> None:
    _count.add()


def fill(jobs: int) -> None:
    async def send() -> None:
        await broker.startup()
        for _ in range(jobs):
            await noop.kiq()
        await broker.shutdown()

    asyncio.run(send())
