"""Finds the `oarlock up` that a command without --state-dir means. Of several it chooses none."""

from __future__ import annotations

import os
from pathlib import Path

from oarlock.cli.problems import InputProblem, NotDone
from oarlock.sandbox.up.state_dir import StateDir, running


def found_up() -> StateDir | None:
    """The `oarlock up` whose kubeconfig OARLOCK_KUBECONFIG or KUBECONFIG names, else the only one that this user runs;
    None if none runs. Raises InputProblem if several run.
    """
    if (named := _of_kubeconfig()) is not None:
        return named
    states = running()
    if len(states) > 1:
        told = ", ".join(str(state.root) for state in states)
        raise InputProblem(f"{len(states)} `oarlock up` are running; say which with --state-dir or KUBECONFIG: {told}")
    return states[0] if states else None


def named_or_found(state_dir: Path | None) -> StateDir:
    """The given directory, or that of the running `oarlock up`. Raises InputProblem, NotDone."""
    if state_dir is not None:
        if not state_dir.is_dir():
            raise InputProblem(f"--state-dir {state_dir}: no such directory; give that of an `oarlock up`")
        return StateDir(state_dir)
    state = found_up()
    if state is None:
        raise NotDone("no `oarlock up` of yours is running; give --state-dir, or start one")
    return state


def _of_kubeconfig() -> StateDir | None:
    files = (os.environ.get("OARLOCK_KUBECONFIG", ""), *os.environ.get("KUBECONFIG", "").split(os.pathsep))
    for file in filter(None, files):
        path = Path(file).resolve()
        state = StateDir(path.parent)
        if state.kubeconfig == path and state.owner_pid():
            return state
    return None
