"""Finds the `oarlock up` that a command without --state-dir means. Of several it chooses none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from oarlock.cli.problems import InputProblem, NotDone
from oarlock.sandbox.up.state_dir import StateDir, running


def found_up() -> StateDir | None:
    """The `oarlock up` whose kubeconfig OARLOCK_KUBECONFIG or KUBECONFIG names, else the only one that this user runs;
    None if none runs. Raises InputProblem if several run.
    """
    if (named := up_of_environment()) is not None:
        return named
    states = running()
    if len(states) > 1:
        told = ", ".join(str(state.root) for state in states)
        raise InputProblem(f"{len(states)} `oarlock up` are running; say which with --state-dir or KUBECONFIG: {told}")
    return states[0] if states else None


def named_or_found(state_dir: Path | None) -> StateDir:
    """The given directory, or that of the running `oarlock up`. Raises InputProblem, NotDone."""
    if state_dir is not None:
        try:
            found = state_dir.is_dir()
        except OSError as error:  # it lies in a folder that may not be looked into
            raise InputProblem(f"--state-dir {state_dir}: {error.strerror}; give one that you may read") from None
        if not found:
            raise InputProblem(f"--state-dir {state_dir}: no such directory; give that of an `oarlock up`")
        return StateDir(state_dir)
    state = found_up()
    if state is None:
        raise NotDone("no `oarlock up` of yours is running; give --state-dir, or start one")
    return state


def up_of_environment() -> StateDir | None:
    """The running `oarlock up` whose kubeconfig OARLOCK_KUBECONFIG or KUBECONFIG names; None if there is none."""
    return up_of([os.environ.get("OARLOCK_KUBECONFIG", ""), *os.environ.get("KUBECONFIG", "").split(os.pathsep)])


def up_of(files: Iterable[str]) -> StateDir | None:
    """The running `oarlock up` that the first of these kubeconfigs belongs to, if any does."""
    for file in filter(None, files):
        path = Path(file).resolve()
        state = StateDir(path.parent)
        if state.kubeconfig == path and state.owner_pid():
            return state
    return None
