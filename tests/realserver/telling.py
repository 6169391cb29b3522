"""Progress for people, and the one line that says what is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

STILL_AT_IT_S = 20.0
ENDING = (signal.SIGINT, signal.SIGTERM)
_TOLD_OF_A_FAILURE = 300


class CannotObtain(Exception):
    """A program cannot be had; the text is one line with the reason and, where there is one, the mend."""


def tell(text: str) -> None:
    """One line on stderr, at once."""
    print(f"realserver: {text}", file=sys.stderr, flush=True)


def run(
    what: str, command: Sequence[str], log: Path, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    """Run a command to its end with its output in `log`, saying every 20 s that it still runs.

    What is interrupted is killed with all that it has started. Raises CannotObtain with the last line that it printed.
    """
    started_s = time.monotonic()
    tell(f"{what} ...")
    process: subprocess.Popen[bytes] | None = None
    with log.open("ab") as out:
        try:
            with _signals_wait():
                process = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # its own group, to be killed as one
                )
            while True:
                try:
                    code = process.wait(STILL_AT_IT_S)
                    break
                except subprocess.TimeoutExpired:
                    tell(f"{what}: {time.monotonic() - started_s:.0f} s, now at: {last_line(log)}")
        except FileNotFoundError:
            raise CannotObtain(f"{what}: there is no {command[0]} on this machine") from None
        except BaseException:
            if process is not None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            raise
    if code:
        raise CannotObtain(f"{what} failed with code {code}: {last_line(log)}")


@contextmanager
def _signals_wait() -> Iterator[None]:
    """What would end us comes once a process that is being started is known: else nobody would kill it."""
    came: list[int] = []
    before = {each: signal.signal(each, lambda number, _: came.append(number)) for each in ENDING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    for number in came:
        signal.raise_signal(number)


def last_line(log: Path) -> str:
    """The last line that tells something, or a word that there is none."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    said = [line for line in lines if line and not line.startswith(("make", "!!!"))]
    errors = [line for line in said if line.startswith(("E:", "error", "fatal"))]
    return (errors or said or ["nothing was said"])[-1][:_TOLD_OF_A_FAILURE]
