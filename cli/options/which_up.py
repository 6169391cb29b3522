"""Which `oarlock up` a command is about that was not told: never one of several, and its name is said."""

from __future__ import annotations

import os
from pathlib import Path

from oarlock.cli.problems import InputProblem
from oarlock.sandbox.up.state_dir import StateDir, running


def found_up() -> StateDir | None:
    """The one whose kubeconfig OARLOCK_KUBECONFIG or KUBECONFIG names, else the only one of this user that runs; None
    where none does. Raises InputProblem where several run.
    """
    if (named := _of_kubeconfig()) is not None:
        return named
    states = running()
    if len(states) > 1:
        told = ", ".join(str(state.root) for state in states)
        raise InputProblem(f"{len(states)} `oarlock up` are running; say which with --state-dir or KUBECONFIG: {told}")
    return states[0] if states else None


def asked(state: StateDir) -> str:
    """What is said on stderr where it was found and not named."""
    return f"asking the `oarlock up` in {state.root}; --state-dir names another"


def _of_kubeconfig() -> StateDir | None:
    files = (os.environ.get("OARLOCK_KUBECONFIG", ""), *os.environ.get("KUBECONFIG", "").split(os.pathsep))
    for file in filter(None, files):
        path = Path(file).resolve()
        state = StateDir(path.parent)
        if state.kubeconfig == path and state.owner_pid():
            return state
    return None
