"""The programs of a real control plane: those that the environment gives (`given`), or obtained once and kept outside
the tree, by version.

The latter lie in `$XDG_CACHE_HOME/oarlock/kubernetes-<version>/bin` (`~/.cache` without XDG_CACHE_HOME). Each appears
there in one step when it is complete; what an interrupted build left is thrown away by the next.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.realserver.building import TARGETS, VERSION, build
from tests.realserver.debian import Packages
from tests.realserver.given import given
from tests.realserver.telling import CannotObtain, tell
from tests.realserver.versions import Version, asked, parse

PACKAGED = {"etcd": "etcd-server", "kubectl": "kubernetes-client"}
"""program -> the binary package it is in"""
BUILT = tuple(TARGETS)
PROGRAMS = (*PACKAGED, *BUILT)
ROOM_BYTES = 6 << 30
"""Free disk that a build needs."""


def home() -> Path:
    """Where the programs of this version are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(cache) / "oarlock" / f"kubernetes-{VERSION}"


def present(names: Sequence[str]) -> dict[str, Path]:
    """Those of the programs that are there. Raises CannotObtain."""
    paths = given(names) or {name: home() / "bin" / name for name in names}
    return {name: path for name, path in paths.items() if path.is_file()}


def obtain(*names: str) -> dict[str, Path]:
    """Each program's path; where none are given, what is missing is downloaded or built first, with progress on stderr.

    Of two that ask at once, one waits for the other. Raises CannotObtain, ValueError for an unknown name.
    """
    if unknown := set(names) - set(PROGRAMS):
        raise ValueError(f"{', '.join(sorted(unknown))}: none of {', '.join(PROGRAMS)}")
    if len(there := present(names)) == len(names):
        return there
    try:
        (home() / "bin").mkdir(parents=True, exist_ok=True)
        with _alone():
            missing = [name for name in names if name not in present(names)]
            if missing:
                _fetch(missing)
    except OSError as error:
        raise CannotObtain(f"{home()}: {error.strerror or error}") from error
    return present(names)


def version_of(name: str) -> Version:
    """Of a program that `obtain` gives, or would build. Raises CannotObtain."""
    there = present([name])
    version = asked(there[name]) if there else parse(VERSION)
    assert version is not None
    return version


def put_on_path(*names: str) -> None:
    """Let programs that are started from now on find these first, where they have been obtained."""
    there = present(names)
    if len(there) == len(names):
        folders = dict.fromkeys(str(path.parent) for path in there.values())
        os.environ["PATH"] = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])


def _fetch(names: Sequence[str]) -> None:
    built = [name for name in names if name in BUILT]
    packaged = [name for name in names if name in PACKAGED]
    free = shutil.disk_usage(home()).free
    if built and free < ROOM_BYTES:
        raise CannotObtain(f"{home()}: a build needs {ROOM_BYTES >> 30} GiB of disk, {free / (1 << 30):.1f} are free")
    for stale in home().glob("work-*"):
        shutil.rmtree(stale, ignore_errors=True)
    log = home() / "build.log"
    log.write_text("")
    tell(f"obtaining {', '.join(names)} into {home()}, all output in build.log there")
    folder = Path(tempfile.mkdtemp(prefix="work-", dir=home()))
    try:
        packages = Packages(folder / "apt", log)
        packages.update()
        if packaged:
            packages.unpack([PACKAGED[name] for name in packaged], folder / "packaged")
            _keep({name: folder / "packaged" / "usr" / "bin" / name for name in packaged})
        if built:
            _keep(build(built, packages, folder / "build", log))
    finally:
        _remove(folder)


def _keep(made: dict[str, Path]) -> None:
    for name, path in made.items():
        if not path.is_file():
            raise CannotObtain(f"{name} was not where it should have come out: {path}")
        path.chmod(0o755)
        path.replace(home() / "bin" / name)
        tell(f"{name} is ready")


def _remove(folder: Path) -> None:
    """Go writes parts of its caches read-only."""
    for root, _, _ in os.walk(folder):
        Path(root).chmod(0o755)
    shutil.rmtree(folder)


@contextmanager
def _alone() -> Iterator[None]:
    """A lock that ends with the process that holds it, however it ends."""
    with (home() / "lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("somebody else is obtaining programs; waiting for them ...")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
