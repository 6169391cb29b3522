"""The process `oarlock operator` under `oarlock dev`: started again when its files are new, and what its log says."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from oarlock.cli.logs import USERS_OWN
from oarlock.sandbox.up.program import Program, ProgramChild
from oarlock.workers.metrics.serving.bind_address import BACKLOG, FD_VARIABLE, url
from oarlock.workers.process.log_line import printable

LISTENERS = 2
"""Its workers' metrics, and its ingestor's."""
_SHOWN = frozenset({"queue", "controller", "key", "resource", "error", "reason", "why", "detail", "verb"})
_OF_EVERY_START = frozenset({"bootstrap", "waiting", "ended", "left"})


class OperatorChild(ProgramChild):
    """``metrics_url``: where its workers' figures are, whichever process it is just now. ``yields``: as a program's."""

    def __init__(self, what: str, workers: int, environment: Mapping[str, str], logs: Path, yields: int) -> None:
        self._sockets = [socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) for _ in range(LISTENERS)]
        fds = tuple(each.fileno() for each in self._sockets)
        self.metrics_url = url(self._sockets[0])
        command = [
            sys.executable,
            "-P",
            "-m",
            "oarlock.cli",
            "operator",
            what,
            "--workers",
            str(workers),
            "--install-crds",
        ]
        environment = {**environment, FD_VARIABLE: ",".join(map(str, fds)), "PYTHONUNBUFFERED": "1"}
        super().__init__(Program("operator", "operator", command, environment, report=True, fds=fds), logs, yields)
        self._reloading = False

    def reload(self) -> None:
        """End it in good order; the next one is started at once."""
        self._reloading = True
        self.send(signal.SIGTERM)

    def ended(self, now_ms: int) -> int | None:
        """As every child's; one that was to end is not held back as one that died early."""
        code = super().ended(now_ms)
        if code is not None and self._reloading:
            self._reloading, self._early_ends, self.start_at_ms = False, 0, now_ms
        return code

    def close(self) -> None:
        for each in self._sockets:
            each.close()


class LogTail:
    """What is new in a log since the last look, as lines for people: warnings, errors, and what users print or log."""

    def __init__(self, log: Path) -> None:
        self._log, self._at, self._rest = log, 0, ""
        self._said: set[str] = set()

    def lines(self) -> Iterator[str]:
        """The same trouble is told once, until `forget`: a failing turn is tried again and again."""
        for line in self._read():
            told = list(_told(line))
            mark = "\n".join(told)
            if told and (not told[0].startswith("!") or mark not in self._said):
                self._said.add(mark)
                yield from told

    def forget(self) -> None:
        """Tell troubles anew: the code is another."""
        self._said.clear()

    def _read(self) -> list[str]:
        try:
            with self._log.open("rb") as file:
                file.seek(self._at)
                new = file.read()
        except OSError:
            return []
        self._at += len(new)
        *lines, self._rest = (self._rest + new.decode(errors="replace")).split("\n")
        return lines


def _told(line: str) -> Iterator[str]:
    if not line.startswith("time="):
        yield f"  {printable(line)}"
        return
    text, _, trace = line.partition(" traceback=")
    try:
        facts = dict(word.partition("=")[::2] for word in shlex.split(text))
    except ValueError:
        facts = {}
    own = facts.get("logger", "").startswith(USERS_OWN)
    level = facts.get("level", "")
    if (level not in ("warning", "error", "critical") and not own) or facts.get("event") in _OF_EVERY_START:
        return
    mark = "!" if level != "info" else " "
    event = facts.get("text") if facts.get("event") == "message" else facts.get("event", "")
    words = [f"{name}={facts[name]}" for name in facts if name in _SHOWN]
    yield printable(f"{mark} {event} {' '.join(words)}".rstrip())
    if trace:
        yield from (f"    {printable(each)}" for each in str(json.loads(trace)).splitlines())


def environment_of(redis_url: str, kubeconfig: Path) -> dict[str, str]:
    """What the process is told beside its arguments."""
    return {
        "OARLOCK_REDIS_URL": redis_url,
        "OARLOCK_KUBECONFIG": str(kubeconfig),
        "OARLOCK_KUBE_API_QPS": os.environ.get("OARLOCK_KUBE_API_QPS", "0"),
        "OARLOCK_EMBEDDED": "1",
    }
