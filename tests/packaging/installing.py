"""The package built and installed as users do it, without a network: the build tools are those of this environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = {each.name: each.readlink().name for each in sorted((ROOT / "src/oarlock").iterdir()) if each.is_symlink()}
"""The packages of oarlock, and the folder at the top that each is."""

OFFLINE = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation")


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints, both ways. Raises AssertionError with that where it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def sources(to: Path) -> Path:
    """A copy of what the package is built from, links as links: as `git clone` and COPY leave it."""
    for name in (*ROOMS.values(), "src"):
        left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, to / name, symlinks=True, ignore=left_out)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, to / name)
    return to


def wheel_of(source: Path, to: Path) -> Path:
    """A wheel, from a folder or a source archive."""
    run(sys.executable, "-m", "pip", "wheel", *OFFLINE, "--wheel-dir", to, source)
    (made,) = to.glob("oarlock-*.whl")
    return made


@dataclass(frozen=True)
class Environment:
    """A venv of its own in ``folder``, in which what oarlock needs is found after all else."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin/python"

    def install(self, *what: str | Path) -> None:
        """Such as a wheel, or ``-e FOLDER``."""
        run(sys.executable, "-m", "pip", "--python", self.python, "install", *OFFLINE, *what)

    def says(self, *words: str | Path, cwd: Path) -> str:
        """What a program of this environment prints, started in a folder."""
        program, *arguments = words
        return run(self.folder / "bin" / program, *arguments, cwd=cwd)


def environment(folder: Path) -> Environment:
    """A fresh one. A path that a .pth file adds has no .pth files of its own, so this checkout is not in it."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    made = Environment(folder)
    place = run(made.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(place) / "zz_what_oarlock_needs.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return made
