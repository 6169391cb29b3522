"""How a worker's end is named where people read it."""

from __future__ import annotations

import pytest

from oarlock.workers.process.exit_code import ExitCode, ending_of


@pytest.mark.parametrize(
    ("code", "killed", "said"),
    [
        (-11, False, "worker ended by SIGSEGV"),
        (-9, False, "worker ended by SIGKILL"),
        (-9, True, "worker killed by its supervisor"),
        (-40, False, "worker ended by signal 40"),
        (3, False, "worker ended with exit code 3"),
        (ExitCode.FAILED, False, "worker ended with exit code 70"),
        (ExitCode.DONE, False, ""),
        (ExitCode.UNSURE, False, ""),
    ],
)
def test_endings(code: int, killed: bool, said: str) -> None:
    assert ending_of(code, killed) == said
