"""Notices that the files of an operator have changed, and finds out in a process of its own whether they can be used.

A file is looked at by its time and size: some times a second that costs less than a thread, and works on every disk.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oarlock.workers.process.death_signal import command_dying_with_this_process

Stamp = tuple[int, int]
GONE: Stamp = (0, 0)


@dataclass(frozen=True, slots=True)
class Checked:
    """What `oarlock operator --check` said. ``problem``: one line, empty if the files can be used."""

    problem: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        return [Path(each) for each in self.facts.get("files", ())]


class Check:
    """One look at the files, in another process: what is imported here could not be imported anew."""

    def __init__(self, what: str) -> None:
        # -P: a file of the folder that we are in, such as redis.py, is not to hide a library of that name.
        command = [sys.executable, "-P", "-m", "oarlock.cli", "operator", what, "--check"]
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would fill up before anybody reads it
        self._process = subprocess.Popen(
            command_dying_with_this_process(command),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def done(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        """Nobody waits for it any more."""
        self._process.kill()
        self._process.wait()
        self._output.close()

    def wait(self) -> Checked:
        """Its outcome."""
        self._process.wait()
        with self._output as output:
            output.seek(0)
            said = output.read().decode(errors="replace")
        if self._process.returncode == 0:
            return Checked("", json.loads(said[said.index("{\n") :]))
        lines = [line for line in said.splitlines() if line.strip()]
        return Checked(lines[-1].removeprefix("oarlock: ") if lines else "it ended without a word")


class CodeWatch:
    """``changed`` is true once after each change of one of the files."""

    def __init__(self, what: str, files: list[Path]) -> None:
        self._first = [Path(what).absolute()] if Path(what).suffix == ".py" else []
        self._stamps: dict[Path, Stamp] = {}
        self.follow(files)

    def follow(self, files: list[Path]) -> None:
        """From now on look at these; those that are known keep the state that was seen last."""
        self._stamps = {file: self._stamps.get(file, _stamp(file)) for file in (*self._first, *files)}

    def changed(self) -> bool:
        """Look now."""
        now = {file: _stamp(file) for file in self._stamps}
        found = now != self._stamps
        self._stamps = now
        return found


def _stamp(file: Path) -> Stamp:
    """GONE where it is not there: an editor may move another one there in a moment."""
    try:
        stat = file.stat()
    except OSError:
        return GONE
    return stat.st_mtime_ns, stat.st_size
