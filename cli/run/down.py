"""`oarlock down`: stop an `oarlock up` and wait until all its processes are gone."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from oarlock.cli.options.options import state_dir_option
from oarlock.cli.options.which_up import named_or_found
from oarlock.cli.problems import NotDone
from oarlock.sandbox.up.state_dir import is_alive

LOOK_EVERY_S = 0.02


@click.command(epilog="\b\nExample:\n  oarlock down --state-dir DIR")
@state_dir_option
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0.1), default=30.0, show_default=True, help="Seconds."
)
def down(state_dir: Path | None, timeout_s: float) -> None:
    """Stop an `oarlock up` and wait until all its processes are gone. Where none runs in the --state-dir
    it does nothing.
    """
    state = named_or_found(state_dir)
    pid = state.owner_pid()
    processes = state.read_processes()
    if pid:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while state.owner_pid() or any(is_alive(each) for each in processes):
        if time.monotonic() > deadline:
            left = ", ".join(f"{each.name} ({each.pid})" for each in processes if is_alive(each))
            raise NotDone(
                f"not all processes are gone after {timeout_s:g} s: {left or f'oarlock up ({pid})'}; stop these by hand"
            )
        time.sleep(LOOK_EVERY_S)
    if not pid:
        state.clear()  # it was killed: its URLs and kubeconfig lead nowhere
    click.echo(f"stopped {state.root}" if pid else f"no `oarlock up` runs in {state.root}")
