"""Programs that the environment gives: which is taken, its version, and what that changes. No real one is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.realserver import programs
from tests.realserver.given import ANY, ENVTEST
from tests.realserver.server import RealServer
from tests.realserver.telling import CannotObtain
from tests.realserver.versions import Version, asked, controllers, known, parse

ENVTEST_PROGRAMS = ("kube-apiserver", "etcd", "kubectl")
OURS = ("replicaset", "replicationcontroller", "daemonset")


@pytest.fixture(autouse=True)
def nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given, and there is neither a cache nor a way to fill one."""
    for variable in (ANY, ENVTEST):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def fetch(names: object) -> None:
        raise CannotObtain(f"would build {names}")

    monkeypatch.setattr(programs, "_fetch", fetch)


def program(folder: Path, name: str, says: str, code: int = 0) -> Path:
    """One that answers the question for its version, and no other."""
    folder.mkdir(parents=True, exist_ok=True)
    question = "version --client" if name == "kubectl" else "--version"
    text = f"#!/bin/sh\ntest \"$*\" = '{question}' || exit 64\ncat <<'END'\n{says}\nEND\nexit {code}\n"
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def assets(folder: Path, version: str = "1.36.2") -> Path:
    """A folder as users of envtest have it."""
    program(folder, "kube-apiserver", f"Kubernetes v{version}")
    program(folder, "etcd", "etcd Version: 3.5.30\nGit SHA: Not provided\nGo Version: go1.26.4")
    program(folder, "kubectl", f"Client Version: v{version}\nKustomize Version: v5.8.1")
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Kubernetes v1.20.2", (1, 20, 2)),
        ("Kubernetes v1.36.2", (1, 36, 2)),
        ("Kubernetes v1.36.2+k3s1", (1, 36, 2)),
        ("Kubernetes v1.37.0-alpha.1.52+0123456789abcd", (1, 37, 0)),
        ("v1.20.2", (1, 20, 2)),
        ("etcd Version: 3.4.23\nGit SHA: Not provided\nGo Version: go1.19.8\nGo OS/Arch: linux/amd64", (3, 4, 23)),
        ('Client Version: version.Info{Major:"1", Minor:"20", GitVersion:"v1.20.2", GoVersion:"go1.19.8"}', (1, 20, 2)),
        ("Client Version: v1.36.4\nKustomize Version: v5.8.1", (1, 36, 4)),
        ("Error: unknown flag: --version", None),
        ("", None),
    ],
)
def test_the_version_in_an_answer(text: str, version: tuple[int, int, int] | None) -> None:
    assert parse(text) == version


def test_a_minor_version_is_before_its_patches() -> None:
    assert Version(1, 21, 14) < (1, 22) <= Version(1, 22, 0) < (1, 23)
    assert str(Version(1, 36, 2)) == "1.36.2"


def test_each_program_is_asked_in_its_own_way(tmp_path: Path) -> None:
    folder = assets(tmp_path / "assets")
    assert [asked(folder / name) for name in ENVTEST_PROGRAMS] == [(1, 36, 2), (3, 5, 30), (1, 36, 2)]


@pytest.mark.parametrize(
    ("says", "code", "reason"),
    [("usage: etcd", 0, "tells no version: usage: etcd"), ("etcd Version: 3.5.30", 1, "tells no version")],
    ids=["no version", "an error"],
)
def test_no_answer(tmp_path: Path, says: str, code: int, reason: str) -> None:
    with pytest.raises(CannotObtain, match=reason):
        asked(program(tmp_path, "etcd", says, code))


def test_what_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "etcd"
    path.write_bytes(b"\0\0")
    path.chmod(0o755)
    with pytest.raises(CannotObtain, match="cannot be run"):
        asked(path)


def test_given_programs_come_before_built_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = program(programs.home() / "bin", "etcd", "etcd Version: 3.4.23")
    assert programs.obtain("etcd") == {"etcd": built}
    folder = assets(tmp_path / "assets")
    monkeypatch.setenv(ENVTEST, str(folder))
    assert programs.obtain("etcd") == {"etcd": folder / "etcd"}
    assert programs.present(["kubectl"]) == {"kubectl": folder / "kubectl"}
    assert programs.version_of("kube-apiserver") == (1, 36, 2)


def test_the_folder_for_any_program_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    envtest, own = assets(tmp_path / "assets"), tmp_path / "own"
    program(own, "kube-controller-manager", "Kubernetes v1.35.1")
    program(own, "kubectl", "Client Version: v1.35.1")
    monkeypatch.setenv(ENVTEST, str(envtest))
    monkeypatch.setenv(ANY, str(own))
    found = programs.obtain("kube-apiserver", "kube-controller-manager", "kubectl")
    assert {name: path.parent for name, path in found.items()} == {
        "kube-apiserver": envtest,
        "kube-controller-manager": own,
        "kubectl": own,
    }
    assert programs.version_of("kube-controller-manager") == (1, 35, 1)


def test_an_empty_variable_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVTEST, "")
    assert programs.version_of("kube-apiserver") == (1, 20, 2)
    with pytest.raises(CannotObtain, match="would build"):
        programs.obtain("kube-apiserver")


def test_a_folder_may_be_said_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are started in other folders than the one that the variable was said in."""
    assets(tmp_path / "assets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ENVTEST, "assets")
    assert programs.obtain("etcd")["etcd"] == tmp_path / "assets" / "etcd"


def test_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    programs.put_on_path("kubectl")
    assert os.environ["PATH"] == "/usr/bin", "none is there"
    monkeypatch.setenv(ENVTEST, str(assets(tmp_path / "assets")))
    programs.put_on_path("kubectl")
    assert os.environ["PATH"] == f"{tmp_path / 'assets'}:/usr/bin"


def command(*names: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.realserver`, as it is called from the Makefile."""
    return subprocess.run(
        [sys.executable, "-m", "tests.realserver", *names],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=ROOT,
        timeout=60,
        check=False,
    )


def test_versions_are_told(tmp_path: Path) -> None:
    folder = assets(tmp_path / "assets")
    done = command("etcd", "kube-apiserver", KUBEBUILDER_ASSETS=str(folder))
    assert (done.returncode, done.stdout) == (0, f"etcd\t{folder}/etcd\nkube-apiserver\t{folder}/kube-apiserver\n")
    assert f"etcd 3.5.30: {folder}/etcd" in done.stderr
    assert f"kube-apiserver 1.36.2: {folder}/kube-apiserver" in done.stderr


@pytest.mark.parametrize("variable", [ANY, ENVTEST])
def test_a_folder_that_is_not_there(tmp_path: Path, variable: str) -> None:
    done = command(**{variable: str(tmp_path / "nowhere")})
    said = f"realserver: {variable}={tmp_path / 'nowhere'}: there is no such directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_a_folder_without_a_needed_program(tmp_path: Path) -> None:
    """The acceptance suite needs the controller-manager too. Another version's is not built beside."""
    folder = assets(tmp_path / "assets")
    done = command(KUBEBUILDER_ASSETS=str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"realserver: KUBEBUILDER_ASSETS={folder}: there is no kube-controller-manager; "
        "name a directory with it in OARLOCK_KUBERNETES_BIN\n"
    )
    (tmp_path / "own").mkdir()
    done = command(KUBEBUILDER_ASSETS=str(folder), OARLOCK_KUBERNETES_BIN=str(tmp_path / "own"))
    assert done.returncode == 2
    assert "there is no kube-controller-manager; put it there" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_program_that_may_not_be_executed(tmp_path: Path) -> None:
    folder = assets(tmp_path / "assets")
    (folder / "etcd").chmod(0o644)
    done = command("etcd", KUBEBUILDER_ASSETS=str(folder))
    assert (done.returncode, f"chmod +x {folder}/etcd" in done.stderr) == (2, True)


FLAGS = ("--port=0", "--secure-port=0", "--leader-elect=false")


@pytest.mark.parametrize(
    ("version", "flags"),
    [
        ((1, 20, 2), FLAGS),
        ((1, 21, 14), FLAGS),
        ((1, 22, 0), FLAGS[1:]),
        ((1, 36, 2), FLAGS[1:]),
    ],
)
def test_flags_that_a_version_knows(version: tuple[int, int, int], flags: tuple[str, ...]) -> None:
    assert known(Version(*version), *FLAGS) == list(flags)


@pytest.mark.parametrize(
    ("version", "names", "said"),
    [
        ((1, 20, 2), OURS, "replicaset,replicationcontroller,daemonset"),
        ((1, 26, 15), OURS, "replicaset,replicationcontroller,daemonset"),
        ((1, 27, 0), OURS, "replicaset-controller,replicationcontroller-controller,daemonset-controller"),
        (
            (1, 36, 2),
            ("namespace", "garbagecollector", "resourcequota"),
            "namespace-controller,garbage-collector-controller,resourcequota-controller",
        ),
        ((1, 20, 2), ("*", "-replicaset"), "*,-replicaset"),
        ((1, 36, 2), ("*", "-replicaset"), "*,-replicaset-controller"),
    ],
)
def test_names_of_controllers(version: tuple[int, int, int], names: tuple[str, ...], said: str) -> None:
    assert controllers(Version(*version), names) == said


def test_a_server_is_given_what_its_manager_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program is asked by itself, whatever the version of the others is."""
    started: list[list[str]] = []
    monkeypatch.setattr(RealServer, "_run", lambda _, program, *flags: started.append([program.name, *flags]))
    own = tmp_path / "own"
    for name, version in (("kube-controller-manager", "1.36.2"), ("kube-scheduler", "1.20.2")):
        program(own, name, f"Kubernetes v{version}")
    monkeypatch.setenv(ANY, str(own))
    server = RealServer(tmp_path)
    server.run_controllers("garbagecollector")
    server.run_scheduler()
    (manager, *manager_flags), (scheduler, *scheduler_flags) = started
    assert (manager, scheduler) == ("kube-controller-manager", "kube-scheduler")
    assert "--controllers=garbage-collector-controller" in manager_flags
    assert ("--port=0" in manager_flags, "--port=0" in scheduler_flags) == (False, True)
    assert ("--secure-port=0" in manager_flags, "--secure-port=0" in scheduler_flags) == (True, True)


def test_every_version_is_asked_once(tmp_path: Path) -> None:
    path = program(tmp_path, "etcd", "etcd Version: 3.5.30")
    assert asked(path) == (3, 5, 30)
    path.write_text("#!/bin/sh\nexit 1\n")
    assert asked(path) == (3, 5, 30)
