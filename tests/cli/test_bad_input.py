"""Input that cannot be used: exit 2, a line for each problem that names file, line, field and mend; nothing starts."""

from __future__ import annotations

from pathlib import Path

import pytest

import oarlock.cli.run.up as up_command
from tests.cli.cli_helpers import REPLICASET, call, problems


@pytest.fixture(autouse=True)
def _nothing_may_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object) -> None:
        raise AssertionError("something was started")

    monkeypatch.setattr(up_command, "Up", started)


SELECTOR = "  selector:\n    matchLabels: {app: web}\n"
CASES = [
    pytest.param("a: [\n", "f.yaml:2:1: not valid YAML", id="broken YAML"),
    pytest.param(REPLICASET.replace("kind: ReplicaSet\n", ""), "document 1: kind: missing; give one", id="no kind"),
    pytest.param(REPLICASET.replace("apiVersion: apps/v1\n", ""), "apiVersion: missing; give one", id="no apiVersion"),
    pytest.param(
        REPLICASET.replace("name: web", "nam: web"), "f.yaml:3: document 1: metadata.name: missing", id="no name"
    ),
    pytest.param(REPLICASET.replace("name: web", "name: 7"), "metadata.name: 7 is not text", id="a number as name"),
    pytest.param("- 1\n- 2\n", "document 1: not an object", id="a list"),
    pytest.param(
        REPLICASET.replace("ReplicaSet", "CloneSet"),
        "f.yaml:2: document 1 (apps/v1 CloneSet): this kind",
        id="unknown kind",
    ),
    pytest.param(
        REPLICASET.replace("apps/v1", "extensions/v1beta1"),
        "extensions/v1beta1 is not served; write apps/v1",
        id="old version",
    ),
    pytest.param(
        REPLICASET.replace("labels: {app: web}", "labels: {app: other}"),
        "f.yaml:11: document 1 (ReplicaSet default/web): spec.template.metadata.labels: Invalid value",
        id="selector that does not match the template",
    ),
    pytest.param(
        REPLICASET.replace(SELECTOR, ""),
        "spec.selector: Required value; give spec.selector.matchLabels",
        id="no selector",
    ),
    pytest.param(
        REPLICASET.replace("replicas: 3", "replicas: -1"),
        "f.yaml:6: document 1 (ReplicaSet default/web): spec.replicas: Invalid value: -1: must be greater than or",
        id="replicas -1",
    ),
    pytest.param(
        REPLICASET.replace("replicas: 3", 'replicas: "3"'),
        "spec.replicas: expected a whole number, got text",
        id="quoted number",
    ),
    pytest.param(
        REPLICASET.replace("replicas: 3", "replicas: 2.5"), "spec.replicas: expected a whole number", id="a fraction"
    ),
    pytest.param(
        REPLICASET.replace("replicas: 3", "replica: 3"),
        "spec.replica: unknown field; did you mean replicas?",
        id="misspelt field",
    ),
    pytest.param(
        REPLICASET.replace("{app: web}", "{app: yes}"), "expected text, got true or false", id="yes as a label"
    ),
    pytest.param(
        REPLICASET.replace("        image: nginx\n", ""), "containers[0].image: Required value", id="no image"
    ),
    pytest.param(
        REPLICASET.replace("name: web", "name: Web_1"), "metadata.name: Invalid value", id="a name in capitals"
    ),
    pytest.param(REPLICASET.replace("name: web", "name: web\n  namespace: A_b"), "f.yaml:5: ", id="a bad namespace"),
    pytest.param(
        "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: x}\nspec: 5\n", "spec: expected a mapping", id="spec 5"
    ),
]


@pytest.mark.parametrize(("text", "told"), CASES)
def test_a_manifest_that_is_wrong(text: str, told: str, tmp_path: Path) -> None:
    path, state = tmp_path / "f.yaml", tmp_path / "state"
    path.write_text(text)
    result = call("up", "-f", str(path), "--state-dir", str(state))
    assert result.exit_code == 2
    lines = problems(result)
    assert told in lines[0]
    assert len(lines) == (2 if told.startswith("spec.selector: Required") else 1), "without it the labels fit nothing"
    assert all(line.startswith(f"oarlock: {path}:") for line in lines)
    assert result.stdout == ""
    assert not state.exists()


def test_stdin_and_several_problems_at_once(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(REPLICASET + "---\n" + REPLICASET.replace("3", "-3"))
    text = REPLICASET.replace("3", "-1") + "---\n" + REPLICASET.replace("ReplicaSet", "CloneSet")
    result = call("up", "-f", "-", "-f", str(other), "-f", str(tmp_path / "none"), stdin=text)
    assert result.exit_code == 2
    lines = problems(result)
    assert len(lines) == 4
    assert any("stdin:6: document 1" in line and "spec.replicas" in line for line in lines)
    assert any("stdin:18: document 2 (apps/v1 CloneSet)" in line and "--skip-unknown" in line for line in lines)
    assert any(f"{other}:22: document 2" in line for line in lines)
    assert any(f"-f {tmp_path / 'none'}: No such file" in line for line in lines)


def test_run_checks_its_input_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("kind: [")
    result = call("run", "-f", str(path))
    assert result.exit_code == 2
    assert len(problems(result)) == 1


def test_run_without_an_owner_of_pods_has_nothing_to_do(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    result = call("run", "-f", str(path))
    assert result.exit_code == 2
    assert (
        "no controller acts on any of these objects; add one of: ReplicaSet, ReplicationController, DaemonSet"
        in problems(result)[-1]
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["up", "--nodes", "0"], "--nodes", id="no nodes"),
        pytest.param(["up", "--workers", "many"], "--workers", id="a word for a number"),
        pytest.param(["up", "--api-port", "70000"], "--api-port", id="no such port"),
        pytest.param(
            ["up", "--unpullable", "*"], "--unpullable: '*' is not a regular expression (nothing to repeat", id="regex"
        ),
        pytest.param(["up", "--frobnicate"], "--frobnicate", id="unknown option"),
        pytest.param(["frobnicate"], "frobnicate", id="unknown command"),
        pytest.param(["run", "--workers", "1"], "give 2 or more, or --no-chaos", id="a kill with one worker"),
        pytest.param(["worker", "--controllers", "cronjob"], "=cronjob: there is no", id="no such controller"),
        pytest.param(
            ["worker", "--workers", "3", "--controllers", "replicaset", "--concurrent-replicaset-syncs", "2"],
            "--concurrent-replicaset-syncs=2: 1 of 3 workers would have nothing to do",
            id="an idle worker",
        ),
        pytest.param(["worker", "--controllers", "-*"], "there is no '-*'", id="all controllers off"),
        pytest.param(
            ["get", "cronjobs"],
            "KIND 'cronjobs' is not in the cache; there are: pods, nodes, replicasets",
            id="unknown kind",
        ),
        pytest.param(["explain", "a/b/c"], "'a/b/c' is no key; write namespace/name", id="no key"),
        pytest.param(["requeue", "nodepools/b/c"], "or KIND before it: rs, rc, ds", id="a kind without keys"),
        pytest.param(["explain", "rs/b/c/d"], "'rs/b/c/d' is no key; write namespace/name", id="too many parts"),
        pytest.param(["expectations", "rs//c"], "'/c' is no key; write namespace/name", id="no namespace"),
        pytest.param(["explain", "rs/a/b", "-n", "c"], "'a/b' is not in --namespace c", id="two namespaces"),
        pytest.param(["explain", "x/b", "-n", "c"], "'x/b' is not in --namespace c", id="no kind either"),
        pytest.param(
            ["explain", "rs/a/b", "-c", "daemonset"],
            "'rs/a/b' is no key of --controller daemonset; leave one of them out",
            id="two kinds",
        ),
        pytest.param(["explain", "a/b", "-n", "c"], "is not in --namespace c", id="two namespaces"),
        pytest.param(
            ["status", "--state-dir", "/nowhere"], "--state-dir /nowhere: no such directory", id="no such state"
        ),
        pytest.param(["queue", "--state-dir", "/nowhere"], "no `oarlock up` runs here", id="no such state for a look"),
    ],
)
def test_options_that_make_no_sense(arguments: list[str], told: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    (line,) = problems(result)
    assert told in line


def test_a_state_dir_that_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    result = call("up", "--state-dir", str(path))
    assert result.exit_code == 2
    (line,) = problems(result)
    assert f"--state-dir {path}: there is a file of that name" in line


TOO_LONG = Path("/", "n" * 300)
"""Whoever asks for what it is is refused, as by a folder of another user; and so is root."""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["status", "--state-dir", str(TOO_LONG)], f"--state-dir {TOO_LONG}: File name", id="status"),
        pytest.param(["down", "--state-dir", str(TOO_LONG)], f"--state-dir {TOO_LONG}: File name", id="down"),
        pytest.param(["up", "-f", str(TOO_LONG)], f"-f {TOO_LONG}: File name", id="-f"),
        pytest.param(["crd", f"{TOO_LONG}.py"], f"{TOO_LONG}.py: File name", id="crd"),
        pytest.param(["crd", TOO_LONG.name], f"{TOO_LONG.name}: no such file, and no such module", id="a module"),
        pytest.param(["plan", "-f", "-"], "/.kube/config: file name", id="the kubeconfig at home"),
    ],
)
def test_paths_that_may_not_be_looked_at(arguments: list[str], told: str) -> None:
    result = call(*arguments, stdin=REPLICASET, env={"HOME": str(TOO_LONG)})
    assert result.exit_code == 2, result.output
    (line,) = problems(result)
    assert told in line
