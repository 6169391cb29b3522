"""Programs that the environment gives, in place of those that are downloaded and built.

Where a folder is given, all programs come from given folders: nothing is built beside them, which would be of another
version.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.realserver.telling import CannotObtain

ANY = "OARLOCK_KUBERNETES_BIN"
"""May hold any of the programs, and is looked into first."""
ENVTEST = "KUBEBUILDER_ASSETS"
"""As users of envtest have it: kube-apiserver, etcd, kubectl."""


def given(names: Sequence[str]) -> dict[str, Path]:
    """Each program's path; nothing where the environment names no folder. Raises CannotObtain."""
    folders = {variable: Path(said).expanduser().absolute() for variable in (ANY, ENVTEST) if (said := _said(variable))}
    for variable, folder in folders.items():
        if not folder.is_dir():
            raise CannotObtain(f"{variable}={folder}: there is no such directory")
    return {name: _found(name, folders) for name in names} if folders else {}


def _said(variable: str) -> str:
    return os.environ.get(variable, "").strip()


def _found(name: str, folders: dict[str, Path]) -> Path:
    for variable, folder in folders.items():
        path = folder / name
        if path.is_file():
            if not os.access(path, os.X_OK):
                raise CannotObtain(f"{variable}={folder}: {name} is there and may not be executed: chmod +x {path}")
            return path
    where = " and ".join(f"{variable}={folder}" for variable, folder in folders.items())
    mend = f"put it there, or unset {' and '.join(folders)}" if ANY in folders else f"name a directory with it in {ANY}"
    raise CannotObtain(f"{where}: there is no {name}; {mend}")
