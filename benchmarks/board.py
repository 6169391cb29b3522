"""How much of a core `oarlock board` takes while pages watch it, with very many queued keys.

A Redis is planted as for the benchmark look. A board then runs as a process of its own. Clients read its stream as
pages do: each the keys, whose rows all change every second, as their ages do; or each the start page. One more asks for
the page of a failing key as often as it is told to. The figure is what the kernel counts for the board's process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from benchmarks import look, report
from benchmarks.report import Unfit, say
from oarlock.broker.connection.client import connect
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis

WARM_S = 3.0
PARTS = {"keys": "keys", "start": "trouble,namespaces,processes"}
TICKS_S = os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="oarlock-bench-") as folder,
        EmbeddedRedis(Path(folder) / "redis") as server,
    ):
        client = connect(server.url("admin"))
        there = look.plant(client, options)
        say(f"planted {options.keys:,} keys")
        with board(server.url("metrics")) as (process, address):
            shares: dict[str, float] = {"nobody": share(process, options.seconds)}
            for page in PARTS:
                for count in (1, 3):
                    with watching(address, page, count) as read:
                        shares[f"{page}, {count}"] = share(process, options.seconds)
                    if not all(read):
                        raise Unfit(f"a page of {page} was sent nothing")
            with watching(address, "keys", 1), asking(address, there.failing) as pages:
                shares["keys, 1, and a key"] = share(process, options.seconds)
            if not pages[0]:
                raise Unfit("the page of the key was never made")
    tell(options, shares)


@contextmanager
def board(redis_url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its address."""
    command = [sys.executable, "-m", "oarlock.cli", "board", "--bind", "127.0.0.1:0", "--redis", redis_url]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        address = next((line.split()[5] for line in process.stderr if "the board is at" in line), "")
        if not address:
            raise Unfit("the board has ended")
        yield process, address
    finally:
        process.terminate()
        process.wait(10)


def share(process: subprocess.Popen[str], seconds: float) -> float:
    """% of a core that the process takes, once it has begun."""
    time.sleep(WARM_S)
    begun, cpu_begun = time.monotonic(), _cpu_s(process.pid)
    time.sleep(seconds)
    return 100 * (_cpu_s(process.pid) - cpu_begun) / (time.monotonic() - begun)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


@contextmanager
def watching(address: str, page: str, count: int) -> Iterator[list[int]]:
    """So many clients of the stream, meanwhile; the bytes that each has read."""
    read, ended = [0] * count, threading.Event()

    def run(at: int) -> None:
        with urlopen(f"{address}api/events?parts={PARTS[page]}", timeout=10) as stream:
            while not ended.is_set() and (some := stream.read1(1 << 20)):
                read[at] += len(some)

    with _threads([(run, (at,)) for at in range(count)], ended):
        yield read


@contextmanager
def asking(address: str, key: str) -> Iterator[list[int]]:
    """The page of a key, again and again; how often."""
    pages, ended = [0], threading.Event()

    def run() -> None:
        while not ended.is_set():
            with urlopen(f"{address}api/key?queue={look.QUEUE}&key={quote(key)}", timeout=30) as answer:
                again_ms: int = json.load(answer)["again_ms"]
            pages[0] += 1
            ended.wait(again_ms / 1_000)

    with _threads([(run, ())], ended):
        yield pages


@contextmanager
def _threads(runs: Sequence[tuple[Any, tuple[Any, ...]]], ended: threading.Event) -> Iterator[None]:
    with ExitStack() as stack:
        for run, arguments in runs:
            thread = threading.Thread(target=run, args=arguments)
            thread.start()
            stack.callback(thread.join)
        stack.callback(ended.set)
        yield


def tell(options: argparse.Namespace, shares: dict[str, float]) -> None:
    facts = {
        "benchmark": "board",
        "keys": options.keys,
        "seconds": options.seconds,
        "percent_of_a_core": {name: round(value, 2) for name, value in shares.items()},
    }
    rows = [(name, f"{value:.2f}") for name, value in shares.items()]
    report.show(f"{options.keys:,} keys, {options.seconds:g} s each", ("who watches", "% of a core"), rows)
    report.finish(facts)


def _parser() -> argparse.ArgumentParser:
    parser = look.parser("board", __doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement")
    return parser


if __name__ == "__main__":
    report.main(main)
