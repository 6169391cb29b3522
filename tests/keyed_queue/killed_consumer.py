"""A consumer to be killed: it looks a key's version up and writes down that it began and ended. Run as a process."""

from __future__ import annotations

import os
import sys
import time

import redis

from oarlock.queue import Context, KeyedQueue

QUEUE, VERSIONS = "killed", "theirs:versions"
LEASE_S = 3.0


def main(url: str, journal_path: str) -> None:
    queue, theirs = KeyedQueue(QUEUE, url), redis.Redis.from_url(url)
    journal = os.open(journal_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(word: str, ctx: Context, version: int) -> None:
        os.write(journal, f"{word} {ctx.key} {ctx.token} {version} {time.monotonic_ns()}\n".encode())

    def sync(key: str, ctx: Context) -> None:
        note("begin", ctx, 0)
        version = int(theirs.hget(VERSIONS, key) or 0)  # type: ignore[arg-type]
        time.sleep(0.02)
        if ctx.still_mine():
            note("end", ctx, version)

    queue.run(sync, lease_s=LEASE_S, threads=4, retries=None, back_off_s=0.05)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
