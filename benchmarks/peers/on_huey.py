"""huey: its consumer with one thread; no results are kept."""

from huey import RedisHuey

from benchmarks.peers.counted import count_of_this_worker, redis_url

huey = RedisHuey("bench", url=redis_url(), results=False)
_count = count_of_this_worker()


@huey.task()
def noop() -> None:
    _count.add()


def fill(jobs: int) -> None:
    for _ in range(jobs):
        noop()
