"""Programs are obtained once, wholly or not at all, and one line says what is missing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.realserver import debian, programs
from tests.realserver.debian import Packages
from tests.realserver.given import ANY, ENVTEST
from tests.realserver.telling import CannotObtain, run


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for variable in (ANY, ENVTEST):
        monkeypatch.delenv(variable, raising=False)
    return programs.home()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def tool(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def command(*names: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.realserver`, as it is called from the Makefile."""
    return subprocess.run(
        [sys.executable, "-m", "tests.realserver", *names],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        timeout=60,
        check=False,
    )


def leftovers(cache: Path) -> list[str]:
    return [path.name for path in cache.glob("work-*")] + [path.name for path in cache.glob("bin/*")]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(happened: Callable[[], bool], what: str, limit_s: float = 60.0) -> None:
    ends_s = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < ends_s, what
        time.sleep(0.01)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """The last line, which is to tell the reason."""
    return done.stderr.strip().splitlines()[-1]


def test_without_apt(cache: Path, tools: Path) -> None:
    done = command("etcd")
    assert (done.returncode, done.stdout) == (2, "")
    assert "apt-get is missing" in said(done)
    assert leftovers(cache) == []


def test_without_network(cache: Path, tools: Path) -> None:
    tool(tools, "dpkg", "exit 0")
    tool(tools, "apt-get", "echo 'E: Could not resolve the mirror'; exit 100")
    done = command("etcd")
    assert done.returncode == 2
    assert said(done).endswith("E: Could not resolve the mirror")
    assert leftovers(cache) == []


def test_without_disk(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=1 << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(CannotObtain, match=r"needs 6 GiB of disk, 1\.0 are free"):
        programs.obtain("kube-apiserver")


@pytest.mark.usefixtures("cache")
def test_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CannotObtain, match="Not a directory"):
        programs.obtain("etcd")


def test_an_unknown_program(cache: Path) -> None:
    done = command("kubelet")
    assert (done.returncode, "kubelet: unknown" in said(done)) == (2, True)


class Builder:
    """In place of the build: makes its programs after a while, or fails in the middle."""

    def __init__(self, failing: BaseException | None = None, takes_s: float = 0.0) -> None:
        self.failing, self.takes_s, self.calls = failing, takes_s, 0

    def __call__(self, names: Sequence[str], packages: object, folder: Path, log: Path) -> dict[str, Path]:
        self.calls += 1
        folder.mkdir(parents=True)
        made = {}
        for name in names:
            (folder / name).write_text("half")
            if self.failing is not None:
                raise self.failing
            time.sleep(self.takes_s)
            (folder / name).write_text("whole")
            made[name] = folder / name
        return made


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        def __init__(self, folder: Path, log: Path) -> None: ...

        def update(self) -> None: ...

    monkeypatch.setattr(programs, "Packages", Nothing)


@pytest.mark.usefixtures("no_packages")
def test_what_is_there_is_not_built_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Builder()
    monkeypatch.setattr(programs, "build", build)
    first = programs.obtain("kube-apiserver")
    assert first["kube-apiserver"].read_text() == "whole"
    assert os.access(first["kube-apiserver"], os.X_OK)
    assert programs.obtain("kube-apiserver") == first
    programs.obtain("kube-apiserver", "kube-scheduler")
    assert build.calls == 2
    assert sorted(leftovers(cache)) == ["kube-apiserver", "kube-scheduler"]


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize("failing", [KeyboardInterrupt(), CannotObtain("x"), OSError(28, "No space left on device")])
def test_an_interrupted_build_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, failing: BaseException
) -> None:
    monkeypatch.setattr(programs, "build", Builder(failing))
    with pytest.raises(KeyboardInterrupt if isinstance(failing, KeyboardInterrupt) else CannotObtain):
        programs.obtain("kube-apiserver")
    assert leftovers(cache) == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nothing_running(cache: Path, tools: Path, signum: signal.Signals) -> None:
    """Signals reach the one process only, as `kill` sends them and a CI does: what it has started ends all the same."""
    tool(tools, "dpkg", "exit 0")
    tool(tools, "apt-get", f"/bin/sleep 600 & echo $! > {tools}/wrote; /bin/mv {tools}/wrote {tools}/pid; wait")
    command = [sys.executable, "-m", "tests.realserver", "etcd"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
    try:
        until((tools / "pid").exists, "something is started")
        started = int((tools / "pid").read_text())
        process.send_signal(signum)
        _, told = process.communicate(timeout=60)
        assert (process.returncode, told.splitlines()[-1]) == (
            130,
            "realserver: stopped; what was begun is thrown away",
        )
        until(lambda: not runs(started), "it outlives who has started it")
        assert leftovers(cache) == []
    finally:
        process.kill()


def test_a_process_that_is_just_being_started_is_killed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine it may have begun its work before we know its pid."""
    started: list[int] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # other tests may have set another
    try:
        with pytest.raises(KeyboardInterrupt):
            run("waiting", ["/bin/sleep", "600"], tmp_path / "log")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not runs(started[0])


@pytest.mark.usefixtures("no_packages")
def test_what_a_killed_build_left_is_thrown_away(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "work-of-the-killed" / "build").mkdir(parents=True)
    monkeypatch.setattr(programs, "build", Builder())
    programs.obtain("kube-apiserver")
    assert leftovers(cache) == ["kube-apiserver"]


@pytest.mark.usefixtures("no_packages")
def test_of_two_at_once_one_builds(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Builder(takes_s=0.1)
    monkeypatch.setattr(programs, "build", build)
    threads = [threading.Thread(target=programs.obtain, args=["kube-apiserver"]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (build.calls, leftovers(cache)) == (1, ["kube-apiserver"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "sources.list.d/debian.sources",
            "Types: deb\n# a comment\nURIs: http://mirror.example/debian-security\nComponents: main\n\n"
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main contrib\n",
        ),
        (
            "sources.list",
            "# deb http://no.example/x y main\ndeb [arch=amd64] http://mirror.example/debian trixie main\n",
        ),
    ],
)
def test_the_mirror_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setattr(debian, "SOURCES", tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert debian.mirror() == "http://mirror.example/debian"


def test_no_mirror(tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "SOURCES", tmp_path)
    for name in ("apt-get", "dpkg"):
        tool(tools, name, "exit 0")
    with pytest.raises(CannotObtain, match="no Debian mirror"):
        Packages(tmp_path / "apt", tmp_path / "log")


def test_programs_end_with_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import pathlib, time; from tests.realserver.processes import Running;"
        f"print(Running(['/bin/sleep', '600'], pathlib.Path({str(tmp_path / 'log')!r})).process.pid, flush=True);"
        "time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    os.kill(child, 0)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: not runs(child), "it outlives its parent")
