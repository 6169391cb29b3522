"""The `oarlock up` below `oarlock run`: start it, wait for it, watch it, stop it."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from oarlock.cli.problems import NotDone
from oarlock.sandbox.up.state_dir import StateDir
from oarlock.workers.process.death_signal import command_dying_with_this_process

UP_LIMIT_S = 60.0


class UpEnded(Exception):
    """The `oarlock up` has ended. ``lines``: its messages. ``code``: its exit code."""

    def __init__(self, lines: Sequence[str], code: int) -> None:
        super().__init__(f"ended with exit code {code}")
        self.lines, self.code = tuple(lines), code


class Underneath:
    """An `oarlock up` as a child process, which stops in order whenever we end, also by SIGKILL."""

    def __init__(self, root: Path, arguments: Sequence[str]) -> None:
        self.state = StateDir(root.absolute())
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in stop
        command = [sys.executable, "-P", "-m", "oarlock.cli", "up", "--state-dir", str(root), *arguments]
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        self._process = subprocess.Popen(
            command_dying_with_this_process(command, signal.SIGTERM),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
        )

    def await_ready(self) -> None:
        """Raises UpEnded; NotDone after a minute."""
        deadline = time.monotonic() + UP_LIMIT_S
        while self.state.owner_pid() != self._process.pid or self.state.read_up().get("state") != "ready":
            self.check()
            if time.monotonic() > deadline:
                raise NotDone(f"not everything was up within {UP_LIMIT_S:.0f} s; try `oarlock up -v`")
            time.sleep(0.01)

    def check(self) -> None:
        """Raises UpEnded once it has ended."""
        code = self._process.poll()
        if code is not None:
            self._said.seek(0)
            lines = self._said.read().decode(errors="replace").splitlines()
            told = [line.removeprefix("oarlock: ") for line in lines if line.startswith("oarlock: ")]
            raise UpEnded(told or lines[-1:], code)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()
