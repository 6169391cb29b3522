"""Run the tests that a client's source archive holds against a cluster of this process.

    python -m tests.testing.clients.own_suites kr8s -x -k scale

The archive is downloaded from the package index into a directory that is deleted afterwards. Words after the client's
name go to pytest. kr8s's tests need `pip install pytest-asyncio trio` and kubectl. docs/clients.md has the results.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[3]
_HANGS: Final = ("kr8s/tests/test_io.py::test_trio_pod_wait_ready", "kr8s/tests/test_objects.py::test_pod_wait_ready")
"""They wait without a limit for an ending pod that is not ready; the simulated nodes never write that. The second
name stands for its synchronous twin, too."""
_SUITES: Final = {
    "kr8s": ["kr8s/tests", *(f"--deselect={each}" for each in _HANGS)],
    "kubernetes": ["kubernetes/dynamic"],
}


def run(client: str, words: list[str]) -> int:
    """The exit code of pytest, over the tests of the version that is installed here."""
    with tempfile.TemporaryDirectory(prefix="oarlock-suite-") as directory:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", client]
        subprocess.run([*pip, "--dest", directory, f"{client}=={version(client)}"], check=True)
        [archive] = Path(directory).glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(directory, filter="data")
        [unpacked] = (each for each in Path(directory).iterdir() if each.is_dir())
        pytest = [sys.executable, "-m", "pytest", "-p", "tests.testing.clients.stand_ins", "-q", "--tb=short"]
        options = ["-o", "addopts=", "--timeout=20"]  # theirs ask for plugins that only report
        environment = os.environ | {"PYTHONPATH": str(_ROOT)}
        command = [*pytest, *options, *_SUITES[client], *words]
        return subprocess.run(command, cwd=unpacked, env=environment, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in _SUITES:
        sys.exit(f"name a client whose archive holds tests: {' or '.join(_SUITES)}")
    sys.exit(run(sys.argv[1], sys.argv[2:]))
