"""Upstream's `e2e.test` as a program: which cases it has, and running some of them."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.conformance import results
from tests.conformance.results import Result
from tests.realserver.beside import Broken
from tests.realserver.processes import Running

_LIST_LIMIT_S = 120.0
_END_LIMIT_S = 60.0
_LOOK_S = 0.5
_TELL_S = 30.0


class Suite:
    """`folder` takes its output and reports."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder
        folder.mkdir(parents=True, exist_ok=True)
        flags = self._said("--help")
        self._no_color, self._dry = (  # the former are Ginkgo 1's
            ("--ginkgo.noColor", "--ginkgo.dryRun")
            if "ginkgo.noColor" in flags
            else ("--ginkgo.no-color", "--ginkgo.dry-run")
        )

    def texts(self) -> list[str]:
        """The full text of every case, in the order of its report. Raises Broken."""
        reports = self._emptied("listing")
        told = self._said(self._dry, "--provider=skeleton", "--host=http://127.0.0.1:1", f"--report-dir={reports}")
        found = list(self._read(reports))
        if not found:
            raise Broken(f"e2e.test lists no case:\n{told[-500:]}")
        return found

    def run(
        self, texts: Sequence[str], kubeconfig: Path, *, limit_s: float, check: Callable[[], None]
    ) -> dict[str, Result]:
        """Run these cases; results by full text, also of what was not asked for, and of `e2e.test` itself if it failed.

        `check` is called again and again meanwhile. After `limit_s` it is told to end, so that the results are of those
        that it has come to. Raises Broken, and what `check` raises.
        """
        reports, log = self._emptied("reports"), self._folder / "e2e.log"
        log.unlink(missing_ok=True)
        running = Running(
            [
                self._program,
                f"--kubeconfig={kubeconfig}",
                "--provider=skeleton",
                f"--ginkgo.focus=({'|'.join(re.escape(text) for text in texts)})$",
                self._no_color,
                f"--report-dir={reports}",
                "--allowed-not-ready-nodes=10",
                "--minStartupPods=0",
                "--system-pods-startup-timeout=1m",
            ],
            log,
        )
        try:
            self._wait(running, limit_s, check)
        finally:
            running.kill()
        found = self._read(reports) or results.read_progress(log.read_text(errors="replace"))
        code = running.process.returncode
        if code and all(result.outcome != "failed" for result in found.values()):
            found["e2e.test"] = Result("failed", 0.0, f"it ended with code {code}: {running.told(1)}")
        return found

    def _wait(self, running: Running, limit_s: float, check: Callable[[], None]) -> None:
        began_s = told_s = time.monotonic()
        while running.alive:
            check()
            time.sleep(_LOOK_S)
            now_s = time.monotonic()
            if now_s - began_s > limit_s:
                tell(f"not done within {limit_s:g} s: it is ended")
                running.process.send_signal(signal.SIGINT)  # it cleans up, and Ginkgo 2 writes its report
                try:
                    running.process.wait(_END_LIMIT_S)
                except subprocess.TimeoutExpired:
                    raise Broken(f"e2e.test did not end when told to:\n{running.told()}") from None
            elif now_s - told_s > _TELL_S:
                told_s = now_s
                tell(f"{now_s - began_s:.0f} s, at: {_last_step(running.log)}")

    def _emptied(self, name: str) -> Path:
        """A folder for reports, without those of an earlier run."""
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def _read(self, reports: Path) -> dict[str, Result]:
        found: dict[str, Result] = {}
        for report in sorted(reports.glob("junit_*.xml")):
            try:
                found |= results.read(report.read_text())
            except ValueError as error:
                raise Broken(f"{report}: {error}") from None
        return found

    def _said(self, *flags: str) -> str:
        done = subprocess.run(
            [self._program, *flags],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_LIST_LIMIT_S,
            check=False,
        )
        return done.stdout


def tell(text: str) -> None:
    """One line on stderr, at once."""
    print(f"conformance: {text}", file=sys.stderr, flush=True)


def _last_step(log: Path) -> str:
    """The last thing that the suite says it is about."""
    steps = [line for line in log.read_text(errors="replace").splitlines() if "STEP: " in line]
    return steps[-1].rpartition("STEP: ")[2][:120] if steps else "its beginning"
