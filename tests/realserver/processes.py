"""Programs that run beside a test and end with it, also when it is killed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from oarlock.sandbox.host import free_port
from oarlock.workers.process.death_signal import command_dying_with_this_process


class Running:
    """One program with its output in a file. It is killed with SIGKILL when the process that started it ends.

    Only a main thread may start one: the kernel ends it with the thread that forked.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.log = log.stem, log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command_dying_with_this_process([str(part) for part in command]),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=cwd or log.parent,
                env=env,
            )

    @property
    def alive(self) -> bool:
        """Whether it runs. Reaps it when it does not."""
        return self.process.poll() is None

    def end(self, limit_s: float = 20.0) -> None:
        """SIGTERM, and SIGKILL if that is not enough."""
        self.process.terminate()
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL: a draining API server whose etcd is gone would keep its port for a minute."""
        self.process.kill()
        self.process.wait()

    def told(self, lines: int = 5) -> str:
        """The end of what it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def free_ports(count: int) -> list[int]:
    """Ports that nobody listened on a moment ago, all different."""
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return list(found)
