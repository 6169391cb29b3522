"""arq: a hundred jobs under way in one event loop; no results are kept, and the queue is read without a pause."""

import asyncio
from typing import Any, ClassVar

from arq import create_pool
from arq.connections import RedisSettings

from benchmarks.peers.counted import count_of_this_worker, redis_url

_count = count_of_this_worker()


async def noop(_: dict[Any, Any]) -> None:
    _count.add()


class WorkerSettings:
    functions: ClassVar = [noop]
    redis_settings = RedisSettings.from_dsn(redis_url())
    max_jobs = 100
    keep_result = 0
    poll_delay = 0.005


def fill(jobs: int) -> None:
    async def send() -> None:
        pool = await create_pool(WorkerSettings.redis_settings)
        for _ in range(jobs):
            await pool.enqueue_job("noop")
        await pool.aclose()

    asyncio.run(send())
