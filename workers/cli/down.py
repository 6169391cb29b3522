"""`oarlock down`: stop an `oarlock up` and wait until all of it is gone."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from workers.cli.options import state_dir_option
from workers.cli.problems import NotDone
from workers.cli.status import find

LOOK_EVERY_S = 0.02


@click.command(epilog="\b\nExample:\n  oarlock down --state-dir DIR")
@state_dir_option
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0.1), default=30.0, show_default=True, help="Seconds."
)
def down(state_dir: Path | None, timeout_s: float) -> None:
    """Stop an `oarlock up` and wait until every process of it is gone. Does nothing where none runs."""
    state = find(state_dir)
    pid = state.owner_pid()
    processes = state.read_processes()
    if pid:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while state.owner_pid() or any(_runs(each.pid, each.started_ms) for each in processes):
        if time.monotonic() > deadline:
            left = ", ".join(f"{each.name} ({each.pid})" for each in processes if _runs(each.pid, each.started_ms))
            raise NotDone(
                f"not all of it is gone after {timeout_s:g} s: {left or f'oarlock up ({pid})'}; stop these by hand"
            )
        time.sleep(LOOK_EVERY_S)
    click.echo("stopped" if pid else f"no `oarlock up` runs in {state.root}")


def _runs(pid: int, started_ms: int) -> bool:
    """Whether this very process still is there: a pid may have been given to another since."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        since_boot_s = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return False
    fields = stat.rpartition(")")[2].split()
    began_ms = time.time() * 1000 - (since_boot_s - int(fields[19]) / os.sysconf("SC_CLK_TCK")) * 1000
    return fields[0] != "Z" and began_ms < started_ms + 5_000
