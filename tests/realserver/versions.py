"""What differs between versions of upstream's programs: how they are started, and what their servers keep.

A version is asked of the program itself. Every difference stands in a table here, with the version that began it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tests.realserver.telling import CannotObtain

ANSWER_LIMIT_S = 60.0
_VERSION = re.compile(r"\bv?(\d+)\.(\d+)\.(\d+)")
_QUESTIONS = {"kubectl": ("version", "--client")}
"""What a program is asked that does not know --version."""

FLAGS_UNTIL = {"--port": (1, 22)}
"""Flag of kube-controller-manager and kube-scheduler -> the first version in which it says nothing. Before, a port was
open without it (kubernetes#96216, #96345); later versions refuse it."""
_NEVER = (99, 0)

LONG_NAMES_SINCE = (1, 27)
"""From then on a controller is called by its name with `-controller` behind it (kubernetes#115813), or as here:"""
LONG_NAMES = {"garbagecollector": "garbage-collector-controller"}

MAX_SURGE_SINCE = (1, 22)
"""From then on a server keeps a DaemonSet's maxSurge (DaemonSetUpdateSurge, beta and on); before, it drops it."""


class Version(NamedTuple):
    """May be compared with (major, minor), which is before all of its patches."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


def parse(text: str) -> Version | None:
    """The first version that is named, as in `Kubernetes v1.36.2+k3s1` or `etcd Version: 3.5.30`."""
    found = _VERSION.search(text)
    return Version(*map(int, found.groups())) if found else None


@lru_cache
def asked(program: Path) -> Version:
    """The version that a program tells. Raises CannotObtain."""
    question = _QUESTIONS.get(program.name, ("--version",))
    try:
        done = subprocess.run(
            [program, *question], capture_output=True, text=True, errors="replace", timeout=ANSWER_LIMIT_S, check=False
        )
    except OSError as error:
        raise CannotObtain(f"{program} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise CannotObtain(f"{program} {' '.join(question)}: no answer within {ANSWER_LIMIT_S:g} s") from None
    version = parse(done.stdout) if done.returncode == 0 else None
    if version is None:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise CannotObtain(f"{program} {' '.join(question)} tells no version: {said[-1] if said else 'nothing'}")
    return version


def known(version: Version, *flags: str) -> list[str]:
    """Those of the flags that say something to this version."""
    return [flag for flag in flags if version < FLAGS_UNTIL.get(flag.partition("=")[0], _NEVER)]


def controllers(version: Version, names: Iterable[str]) -> str:
    """The value of `--controllers` for names as 1.20 has them, `*` and names switched off (`-daemonset`) among them."""
    return ",".join(name if version < LONG_NAMES_SINCE else _long(name) for name in names)


def _long(name: str) -> str:
    bare = name.removeprefix("-")
    return name if bare == "*" else name[: -len(bare)] + LONG_NAMES.get(bare, f"{bare}-controller")
