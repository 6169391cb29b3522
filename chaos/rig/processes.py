"""Processes of a campaign: each writes into a log of its own and dies with the campaign."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from oarlock.workers.process.death_signal import command_dying_with_this_process

STOP_LIMIT_S = 30.0


def servers(redis_url: str, kubeconfig: Path) -> dict[str, str]:
    """The environment of a process of a fleet: what it works with. Requests are not limited."""
    return {"OARLOCK_REDIS_URL": redis_url, "OARLOCK_KUBECONFIG": str(kubeconfig), "OARLOCK_KUBE_API_QPS": "0"}


async def start(
    command: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    at_our_death: signal.Signals = signal.SIGKILL,
    talks: bool = False,
) -> asyncio.subprocess.Process:
    """Only the main thread may. ``talks``: its stdin and stdout are pipes to us; else stdout goes to the log, too."""
    with log.open("ab") as file:
        return await asyncio.create_subprocess_exec(
            *command_dying_with_this_process(list(command), at_our_death),
            stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE if talks else file,
            stderr=file,
            env=environment,
            start_new_session=True,
        )


async def end(processes: Iterable[asyncio.subprocess.Process | None]) -> None:
    """SIGTERM, one after the other; SIGKILL for one that does not end in time."""
    for process in processes:
        if process is None or process.returncode is not None:
            continue
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_LIMIT_S)
        except TimeoutError:
            process.kill()
            await process.wait()
