"""`oarlock nodes` against an API server with simulated nodes, and what it says to input that cannot be used."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from oarlock.cli.nodes.node_text import numbered, parse_taint_change, told, with_taints
from oarlock.sandbox.apiserver.kubeconfig import write_kubeconfig
from oarlock.sandbox.up.state_dir import StateDir
from tests import ROOT
from tests.cli.cli_helpers import call, problems

WAIT_S = 20.0


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a server with nodes node-0, node-1 and node-2; what a test adds, it removes."""
    folder = tmp_path_factory.mktemp("api")
    command = [sys.executable, "-m", "oarlock.sandbox.apiserver", "--state-dir", str(folder), "--nodes", "3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        yield Path(json.loads(process.stdout.readline())["kubeconfig"])
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0


def nodes(kubeconfig: Path, *arguments: str) -> list[dict[str, Any]]:
    """The JSON of a command that must succeed."""
    result = call("nodes", *arguments, "-o", "json", "--kubeconfig", str(kubeconfig))
    assert (result.exit_code, result.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def text(kubeconfig: Path, *arguments: str) -> list[str]:
    """The lines that people get from a command that must succeed."""
    result = call("nodes", *arguments, "--kubeconfig", str(kubeconfig))
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def until_taints(kubeconfig: Path, name: str, wanted: list[str]) -> None:
    """The cluster sets taints after the write that calls for them."""
    ends_s = time.monotonic() + WAIT_S
    while (found := sorted(nodes(kubeconfig, "list", name)[0]["taints"])) != wanted:
        assert time.monotonic() < ends_s, found
        time.sleep(0.01)


def test_a_table_for_people(kubeconfig: Path) -> None:
    text(kubeconfig, "label", "node-1", "zone=a")
    assert [line.split()[:5] for line in text(kubeconfig, "list", "--pods")] == [
        ["NAME", "STATUS", "PODS", "TAINTS", "LABELS"],
        ["node-0", "Ready", "0/110", "-", "-"],
        ["node-1", "Ready", "0/110", "-", "zone=a"],
        ["node-2", "Ready", "0/110", "-", "-"],
    ]
    assert [row["name"] for row in nodes(kubeconfig, "list", "-l", "zone=a")] == ["node-1"]
    assert [row["name"] for row in nodes(kubeconfig, "list", "node-[12]", "-l", "!zone")] == ["node-2"]
    text(kubeconfig, "label", "node-1", "zone-")


def test_add_and_remove(kubeconfig: Path) -> None:
    assert text(kubeconfig, "add") == ["node-3: added"]
    given = ("--label", "zone=b", "--taint", "key=value:NoSchedule", "--taint", "key:NoExecute")
    assert text(kubeconfig, "add", "--count", "100", *given) == ["100 nodes added: node-4 ... node-103"]
    (row,) = nodes(kubeconfig, "list", "node-103")
    assert (row["ready"], row["room"], row["taints"]) == ("True", 110, ["key=value:NoSchedule", "key:NoExecute"])
    assert row["labels"] == {
        "kubernetes.io/hostname": "node-103",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "zone": "b",
    }
    assert text(kubeconfig, "remove", "node-3") == ["node-3: removed"]
    removed = nodes(kubeconfig, "remove", "-l", "zone=b")
    assert len(removed) == 100
    assert removed[0] == {"name": "node-4", "changed": True}
    assert [row["name"] for row in nodes(kubeconfig, "list")] == ["node-0", "node-1", "node-2"]


def test_add_by_name(kubeconfig: Path) -> None:
    added = nodes(kubeconfig, "add", "w-1", "w-2", "--label", "kubernetes.io/os=windows", "--room", "7")
    assert [(row["name"], row["room"], row["changed"]) for row in added] == [("w-1", 7, True), ("w-2", 7, True)]
    assert text(kubeconfig, "add", "--prefix", "w-", "--count", "1") == ["w-3: added"]
    shown = text(kubeconfig, "list", "w-*")
    assert ["kubernetes.io/os=windows" in line for line in shown] == [False, True, True, False]
    assert len(text(kubeconfig, "remove", "w-*")) == 3


def test_labels(kubeconfig: Path) -> None:
    assert text(kubeconfig, "label", "node-0", "node-1", "zone=a", "disk=ssd") == [
        "node-0: labelled",
        "node-1: labelled",
    ]
    changed = nodes(kubeconfig, "label", "--all", "zone=a")
    assert [row["changed"] for row in changed] == [False, False, True]
    assert {row["labels"]["zone"] for row in changed} == {"a"}
    assert text(kubeconfig, "label", "--all", "zone-", "disk-")[-1] == "node-2: unlabelled"
    assert text(kubeconfig, "label", "node-0", "zone-") == ["node-0: as it was"]
    assert all(len(row["labels"]) == 3 for row in nodes(kubeconfig, "list"))


def test_taints(kubeconfig: Path) -> None:
    assert text(kubeconfig, "taint", "node-0", "a=b:NoSchedule", "a:NoExecute") == ["node-0: tainted"]
    assert text(kubeconfig, "taint", "node-0", "a=b:NoSchedule") == ["node-0: as it was"]
    (row,) = nodes(kubeconfig, "taint", "node-0", "a=c:NoSchedule")
    assert sorted(row["taints"]) == ["a:NoExecute", "a=c:NoSchedule"]
    (row,) = nodes(kubeconfig, "taint", "node-0", "a:NoExecute-")
    assert row["taints"] == ["a=c:NoSchedule"]
    assert text(kubeconfig, "taint", "--all", "a-")[0] == "node-0: untainted"
    until_taints(kubeconfig, "node-0", [])


def test_cordon(kubeconfig: Path) -> None:
    assert text(kubeconfig, "cordon", "node-0") == ["node-0: cordoned"]
    assert text(kubeconfig, "cordon", "node-0") == ["node-0: as it was"]
    until_taints(kubeconfig, "node-0", ["node.kubernetes.io/unschedulable:NoSchedule"])
    assert text(kubeconfig, "list", "node-0")[1].split()[1] == "Ready,SchedulingDisabled"
    assert text(kubeconfig, "uncordon", "--all")[0] == "node-0: uncordoned"
    until_taints(kubeconfig, "node-0", [])


@pytest.mark.parametrize(
    ("option", "state", "key"), [((), "NotReady", "not-ready"), (("--unreachable",), "Unknown", "unreachable")]
)
def test_not_ready(kubeconfig: Path, option: tuple[str, ...], state: str, key: str) -> None:
    text(kubeconfig, "not-ready", "node-0", *option)
    until_taints(kubeconfig, "node-0", [f"node.kubernetes.io/{key}:{effect}" for effect in ("NoExecute", "NoSchedule")])
    assert text(kubeconfig, "list", "node-0")[1].split()[1] == state
    assert text(kubeconfig, "ready", "--all") == ["node-0: ready", "node-1: as it was", "node-2: as it was"]
    until_taints(kubeconfig, "node-0", [])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("add Foo", "node 'Foo': bad name: a lowercase RFC 1123 subdomain"),
        ("add --prefix -x", "node '-x0': bad name"),
        ("add node-0 node-9", "node 'node-0': there is one already; give another name"),
        ("add a --count 2", "NODE and --count exclude each other; leave one out"),
        ("add --count 0", "Invalid value for '--count': 0 is not in the range 1<=x<=10000"),
        ("add --label zone", "label 'zone': no value; write key=value, such as zone=a"),
        ("add --label zone=a=b", "label 'zone=a=b': bad value 'a=b'"),
        ("add --taint key=value", "taint 'key=value': no effect; write key=value:Effect"),
        ("add --taint key=value:Never", "taint 'key=value:Never': bad effect: Unsupported value: \"Never\""),
        ("label node-0", "no label is given; write KEY=VALUE"),
        ("label node-0 -x=y", "No such option"),
        ("label node-0 _=y", "label '_=y': bad key '_'"),
        ("label node-0 _-", "label '_-': bad key '_'"),
        ("label zone=a", "no node is given; name some, or use --all or --selector zone=a"),
        ("label none zone=a", "node 'none': there is none; `oarlock nodes list` shows those there are"),
        ("label node-0 --all zone=a", "NODE and --all exclude each other; leave one out"),
        ("taint node-0 key", "no taint is given; write KEY=VALUE:EFFECT, such as dedicated=gpu:NoSchedule, or KEY-"),
        ("taint node-0 key:-", "taint 'key:': bad effect: Required value"),
        ("taint node-0 _-", "taint '_-': bad key '_'"),
        ("taint", "Missing argument"),
        ("remove", "no node is given"),
        ("remove x*", "node 'x*': there is none"),
        ("remove -l zone=nowhere", "no node has the labels 'zone=nowhere'"),
        ("cordon Node_0", "node 'Node_0': there is none"),
        ("list -l =", "--selector '=': "),
        ("vanish node-0", "No such command 'vanish'"),
        ("list --kubeconfig /none/such", "cannot read kubeconfig /none/such"),
    ],
)
def test_bad_input(kubeconfig: Path, arguments: str, line: str) -> None:
    before = nodes(kubeconfig, "list")
    where = () if "--kubeconfig" in arguments else ("--kubeconfig", str(kubeconfig))
    result = call("nodes", *arguments.split(), *where)
    assert (result.exit_code, result.stdout) == (2, "")
    (said,) = problems(result)
    assert said.startswith("oarlock: ")
    assert line in said
    assert nodes(kubeconfig, "list") == before


def test_several_names_that_are_none_are_all_named(kubeconfig: Path) -> None:
    result = call("nodes", "remove", "node-0", "a", "b", "--kubeconfig", str(kubeconfig))
    assert result.exit_code == 2
    assert [line.split()[2] for line in problems(result)] == ["'a':", "'b':"]
    assert len(nodes(kubeconfig, "list")) == 3


def test_no_cluster_is_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kubeconfig: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = call("nodes", "remove", "--all", env={"KUBECONFIG": str(kubeconfig)})
    assert result.exit_code == 2
    assert problems(result) == ["oarlock: no `oarlock up` is running; start one, or name a cluster with --kubeconfig"]
    result = call("nodes", "list", "--state-dir", str(tmp_path / "none"))
    assert result.exit_code == 2
    (line,) = problems(result)
    assert f"--state-dir {tmp_path / 'none'}: no `oarlock up` runs here; start one with" in line
    assert call("nodes", "list", env={"OARLOCK_KUBECONFIG": str(kubeconfig)}).exit_code == 0


def test_the_running_one_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kubeconfig: Path) -> None:
    """By its state directory, whether that is named or a temporary one."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    states = [StateDir.take(None)]
    try:
        states[0].kubeconfig.write_text(kubeconfig.read_text())
        # The lock is this very process's own, which it does not see as another's.
        monkeypatch.setattr(StateDir, "owner_pid", lambda self: int(self.root.is_dir()))
        result = call("nodes", "list")
        assert result.stdout.startswith("NAME")
        assert f"asking the `oarlock up` in {states[0].root}; --state-dir names another" in problems(result)[0]
        other = StateDir.take(tmp_path / "named")
        states.append(other)
        other.kubeconfig.write_text(kubeconfig.read_text())
        named = call("nodes", "list", "--state-dir", str(tmp_path / "named"))
        assert (named.stdout.startswith("NAME"), named.stderr) == (True, "")
        result = call("nodes", "list")
        assert result.exit_code == 2
        assert "2 `oarlock up` are running; say which with --state-dir" in problems(result)[0]
    finally:
        for state in states:
            state.clear()


def test_a_server_that_is_absent(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    result = call("nodes", "list", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert result.exit_code == 2
    (line,) = problems(result)
    assert "no API server answers at http://127.0.0.1:1 (" in line
    assert line.endswith("is it running?")


class _Forbidding(BaseHTTPRequestHandler):
    """Lists three nodes and lets nobody change any."""

    def do_GET(self) -> None:
        meta = [{"name": f"n{i}", "uid": f"u{i}", "resourceVersion": "1"} for i in range(8)]
        self._answer(
            200,
            {"kind": "NodeList", "metadata": {"resourceVersion": "9"}, "items": [{"metadata": each} for each in meta]},
        )

    def do_PATCH(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(403, {"kind": "Status", "status": "Failure", "code": 403, "message": "you may not"})

    do_DELETE = do_PATCH

    def _answer(self, code: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def forbidding(tmp_path: Path) -> Iterator[Path]:
    with HTTPServer(("127.0.0.1", 0), _Forbidding) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{server.server_port}")
        yield tmp_path / "kubeconfig"
        server.shutdown()


@pytest.mark.parametrize("arguments", [("cordon",), ("remove",), ("not-ready",)])
def test_a_server_that_refuses(forbidding: Path, arguments: tuple[str, ...]) -> None:
    result = call("nodes", *arguments, "n0", "n1", "--kubeconfig", str(forbidding))
    assert (result.exit_code, result.stdout) == (1, "")
    assert problems(result) == ["oarlock: node 'n0': you may not", "oarlock: node 'n1': you may not"]


def test_many_refusals_are_not_told_one_by_one(forbidding: Path) -> None:
    result = call("nodes", "remove", "--all", "--kubeconfig", str(forbidding))
    assert result.exit_code == 1
    assert problems(result)[5:] == ["oarlock: ... and 3 more; 0 were done"]


def test_help_teaches_by_example() -> None:
    for command in ("", "list", "add", "remove", "label", "taint", "cordon", "uncordon", "not-ready", "ready"):
        result = call("nodes", *command.split(), "--help")
        assert result.exit_code == 0
        assert f"oarlock nodes {command}".strip() in result.stdout.partition("Examples:")[2], command
    result = call("nodes")
    assert result.exit_code == 2
    assert "Usage: oarlock nodes" in result.stderr


@pytest.mark.parametrize(
    ("before", "words", "after"),
    [
        ([], ["a:NoSchedule"], ["a:NoSchedule"]),
        (["a=1:NoSchedule"], ["a=2:NoSchedule"], ["a=2:NoSchedule"]),
        (["a:NoSchedule"], ["a:NoExecute"], ["a:NoSchedule", "a:NoExecute"]),
        (["a:NoSchedule", "a:NoExecute", "b:NoExecute"], ["a-"], ["b:NoExecute"]),
        (["a:NoSchedule", "a=1:NoExecute"], ["a:NoExecute-"], ["a:NoSchedule"]),
        (["a=1:NoSchedule"], ["a=other:NoSchedule-"], []),
        (["a=1:NoSchedule"], ["b-", "a=1:NoSchedule"], ["a=1:NoSchedule"]),
        (["a=1:NoSchedule"], ["a-", "a=2:NoExecute"], ["a=2:NoExecute"]),
    ],
)
def test_changes_of_taints(before: list[str], words: list[str], after: list[str]) -> None:
    def taints(texts: list[str]) -> list[dict[str, Any]]:
        return [parse_taint_change(each)[0] for each in texts]

    assert with_taints(taints(before), [parse_taint_change(word) for word in words]) == taints(after)


def test_a_taint_that_is_there_keeps_its_time() -> None:
    there = {"key": "a", "effect": "NoExecute", "timeAdded": "2027-01-01T00:00:00Z"}
    assert with_taints([there], [({"key": "a", "effect": "NoExecute"}, True)]) == [there]


def test_names_are_counted_on() -> None:
    assert numbered([], "node-", 2) == ["node-0", "node-1"]
    assert numbered(["node-9", "node-10", "node-x", "other-77"], "node-", 2) == ["node-11", "node-12"]


def test_what_is_told_of_few_and_of_many() -> None:
    assert told("added", ["a", "b"]) == ["a: added", "b: added"]
    assert told("added", [f"n{i}" for i in range(11)]) == ["11 nodes added: n0 ... n10"]
