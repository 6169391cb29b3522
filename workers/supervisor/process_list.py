"""The file that names the processes of a supervisor, for chaos tools and `oarlock status`; replaced at every change."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """``role``: "supervisor" or "worker". ``name``: of the worker in RQ and in the locks, "" for others."""

    role: str
    pid: int
    name: str = ""


OnChange = Callable[[Sequence[Process]], None]
"""Called with the whole list whenever a process was started or has ended."""


def file_writer(path: Path) -> OnChange:
    """An OnChange that replaces the file ``path`` in one step by a list of {"role", "pid", "name"}."""

    def write(processes: Sequence[Process]) -> None:
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(json.dumps([process._asdict() for process in processes], indent=1) + "\n")
        part.replace(path)

    return write
