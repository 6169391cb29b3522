"""Kubernetes programs built from Debian's source package, with Debian's Go, in a folder of their own.

What `make` of upstream's tree needs beyond Go is one call of rsync to copy files; a small stand-in does that.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.realserver.debian import Packages
from tests.realserver.telling import CannotObtain, run, tell

VERSION = "1.20.2"
TARGETS = {
    "kube-apiserver": "cmd/kube-apiserver",
    "kube-controller-manager": "cmd/kube-controller-manager",
    "kube-scheduler": "cmd/kube-scheduler",
    "e2e.test": "test/e2e/e2e.test",
}
"""program -> what upstream's make calls it; of those asked for together each costs little beside the first"""
GO = ("golang-1.19-go", "golang-1.19-src")  # what Debian itself builds the package with
_COPY = """#!/bin/sh
# upstream's build copies its results with: rsync -pc FILE FOLDER
test $# -eq 3 && test "$1" = -pc || { echo "rsync: only -pc FILE FOLDER is known here, not: $*" >&2; exit 2; }
exec cp -p "$2" "$3"
"""


def build(programs: Sequence[str], packages: Packages, folder: Path, log: Path) -> dict[str, Path]:
    """Build each of TARGETS that is asked for. About six minutes of one core, half of it for what all have in common.

    Returns where each program is, inside `folder`. Raises CannotObtain.
    """
    tools = folder / "tools"
    packages.unpack(list(GO), tools)
    root = _unpacked(packages.original_source("kubernetes", folder / "source"), folder)
    goroot = tools / "usr" / "lib" / "go-1.19"
    helpers = folder / "helpers"
    helpers.mkdir()
    (helpers / "rsync").write_text(_COPY)
    (helpers / "rsync").chmod(0o755)
    workspace = root / ".go" / "src" / "k8s.io"
    workspace.mkdir(parents=True)
    (workspace / "kubernetes").symlink_to(Path("..", "..", ".."))
    major, minor, _ = VERSION.split(".")
    version = {
        "KUBE_GIT_COMMIT": "archive",
        "KUBE_GIT_TREE_STATE": "archive",
        "KUBE_GIT_VERSION": f"v{VERSION}",
        "KUBE_GIT_MAJOR": major,
        "KUBE_GIT_MINOR": minor,
    }
    (folder / "version").write_text("".join(f"{name}={value}\n" for name, value in version.items()))
    environment = {
        "PATH": f"{goroot / 'bin'}:{helpers}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder),
        "GOROOT": str(goroot),
        "GOPATH": str(root / ".go"),
        "GOCACHE": str(folder / "gocache"),
        "GOPROXY": "off",
        "CGO_ENABLED": "0",
        "GOFLAGS": os.environ.get("GOFLAGS", ""),
        "KUBE_GIT_VERSION_FILE": str(folder / "version"),
    }
    what = " ".join(TARGETS[program] for program in programs)
    tell(f"building {', '.join(programs)} {VERSION} from source; this takes six to fifteen minutes, once")
    nice = [] if os.environ.get("CI") else ["nice", "-n", "15"]  # where somebody may sit before the machine
    run(f"building {', '.join(programs)}", [*nice, "make", f"WHAT={what}"], log, cwd=root, env=environment)
    return {program: _one(root.glob(f"_output/local/bin/*/*/{program}"), program) for program in programs}


def _unpacked(archive: Path, folder: Path) -> Path:
    tell(f"unpacking {archive.name} ...")
    with tarfile.open(archive) as tar:
        # Debian 12's own Python 3.11.2 knows no filters: there the attribute means nothing.
        tar.extraction_filter = getattr(tarfile, "tar_filter", None)
        tar.extractall(folder)
    return _one(folder.glob("kubernetes-*"), "the source tree")


def _one(found: Iterable[Path], what: str) -> Path:
    paths = sorted(found)
    if len(paths) != 1:
        raise CannotObtain(f"{len(paths)} files instead of one for {what}: this Debian release has another version")
    return paths[0]
