"""compose.yaml as docker-compose understands it, in a copy that may be prepared."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT

COMPOSE = shutil.which("docker-compose")


def copy(folder: Path) -> Path:
    """compose/ and what it refers to, in a folder. Skips where there is no docker-compose."""
    if COMPOSE is None:
        assert not os.environ.get("CI"), "docker-compose is missing"
        pytest.skip("needs docker-compose")
    for name in ("compose", "helm"):
        left_out = shutil.ignore_patterns(".env*", "secrets*")
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    return folder / "compose"


def prepare(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["./prepare.sh", *arguments], cwd=project, capture_output=True, text=True, check=False)


def config(project: Path, *profiles: str) -> subprocess.CompletedProcess[str]:
    assert COMPOSE is not None
    chosen = [word for profile in profiles for word in ("--profile", profile)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OARLOCK_", "COMPOSE_"))}
    command = [COMPOSE, *chosen, "config"]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def services(project: Path, *profiles: str) -> dict[str, Any]:
    told = config(project, *profiles)
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = yaml.safe_load(told.stdout)["services"]
    return found
