"""`oarlock up`: one command, a tree of processes that stays complete, nothing left in the end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarlock.sandbox.host import free_port
from oarlock.sandbox.up.program import BEFORE_OTHERS, YIELDS
from oarlock.sandbox.up.state_dir import PREFIX, Process, is_alive
from tests.e2e.e2e_helpers import MANIFESTS, ROOT, RunningUp, all_gone, environment, oarlock, until
from tests.whole_lines import whole_lines

LATE = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: late}
spec:
  replicas: 4
  selector: {matchLabels: {app: late}}
  template:
    metadata: {labels: {app: late}}
    spec: {containers: [{name: c, image: nginx}]}
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUp]:
    """One for the tests that leave it whole, with the ReplicaSets of other projects where they are at hand."""
    files = sorted(MANIFESTS.glob("rs-*.yaml")) or [ROOT / "examples" / "shop.yaml"]
    running = RunningUp(tmp_path_factory.mktemp("up") / "state", *(f"-f{path}" for path in files))
    yield running
    running.stop()


def test_what_was_brought_becomes_ready(up: RunningUp) -> None:
    def ready() -> bool:
        sets = up.ready_sets()
        return len(sets) >= 2 and all(wanted == available for wanted, available in sets.values())

    until(ready, 20, "all ReplicaSets are ready")


def test_what_it_says(up: RunningUp) -> None:
    told = up.out.read_text()
    assert str(up.state.kubeconfig) in told
    assert up.state.read_redis_url() in told
    for word in ("kubectl get pods", "redis-cli -u", "rq info -u", "oarlock queue", "Ctrl-C"):
        assert word in told


def test_the_api_serves_who_has_the_kubeconfig_and_asks_for_it_by_its_own_name(up: RunningUp) -> None:
    """Whoever else is on the machine, or a page in a browser on it, does nothing and learns nothing."""
    host, port = up.state.read_up()["api_url"].removeprefix("http://").split(":")
    right = {"Authorization": f"Bearer {up.token()}"}

    def asked(**headers: str) -> int:
        connection = http.client.HTTPConnection(host, int(port), timeout=10)
        try:
            connection.request("GET", "/api/v1/pods", headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()

    assert len(up.token()) >= 32
    assert up.state.kubeconfig.stat().st_mode & 0o077 == 0
    assert up.token() not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout
    assert asked() == 401
    assert asked(Authorization="Bearer another") == 401
    assert asked(**right, Host=f"evil.example:{port}") == 421
    assert asked(**right) == 200


def test_processes_and_status_agree(up: RunningUp) -> None:
    facts = up.ask("status")
    assert (facts["running"], facts["ready"], facts["state"], facts["phase"]) == (True, True, "ready", "OPEN")
    assert facts["pid"] == up.process.pid
    roles = [each["role"] for each in facts["processes"]]
    assert sorted(roles) == ["api", "ingestor", "ingestor", "redis", "supervisor", "worker", "worker"]
    assert all(each["alive"] for each in facts["processes"])
    for each in up.processes():
        words = Path(f"/proc/{each.pid}/cmdline").read_bytes().decode() + Path(f"/proc/{each.pid}/comm").read_text()
        mark = {"redis": "redis-server", "api": "oarlock.sandbox.apiserver", "worker": each.name[:15]}
        assert mark.get(each.role, each.name) in words, each  # `ps -o comm` tells those that `up` forked
    assert oarlock("status", "--state-dir", str(up.state.root)).stdout.startswith("ready, epoch 1 OPEN")


def test_redis_goes_before_all_that_waits_for_it(up: RunningUp) -> None:
    nice = {each.role: os.getpriority(os.PRIO_PROCESS, each.pid) for each in up.processes()}
    own = os.getpriority(os.PRIO_PROCESS, up.process.pid)
    others, first = (own, max(-20, own - BEFORE_OTHERS)) if may_go_before(own) else (min(19, own + YIELDS), own)
    assert nice == {"redis": first, **dict.fromkeys(("api", "ingestor", "supervisor", "worker"), others)}


def may_go_before(own: int) -> bool:
    """Whether a process here may be less nice than it was made."""
    code = f"import os; os.setpriority(os.PRIO_PROCESS, 0, {own - BEFORE_OTHERS})"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_rq_info_shows_the_workers_and_the_queue(up: RunningUp) -> None:
    command = [str(Path(sys.executable).with_name("rq")), "info", "-u", up.state.read_redis_url()]
    command += ["--queue-class", "oarlock.workers.rq_queue.KeyQueue"]
    env = environment(PYTHONPATH=str(ROOT))

    def shown() -> str:
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout if "2 workers" in done.stdout else ""

    said = until(shown, 20, "both workers in rq info")  # they enter themselves with their first breath, not before
    for each in up.processes("worker"):
        assert each.rq_worker in said
    assert "replicaset" in said


def test_the_files_are_private(up: RunningUp) -> None:
    for path in (up.state.kubeconfig, up.state.redis_url):
        assert path.stat().st_mode & 0o077 == 0
    assert up.state.root.stat().st_mode & 0o077 == 0


def test_the_audit_log_has_the_creates(up: RunningUp) -> None:
    def creates() -> list[dict[str, object]]:
        lines = [json.loads(line) for line in whole_lines(up.state.audit_log)]
        return [each for each in lines if each["verb"] == "create" and each["objectRef"]["resource"] == "pods"]

    found = until(creates, 30, "pod creates in the audit log")
    assert all(each["level"] == "RequestResponse" for each in found)


def test_a_second_one_in_the_same_place_is_refused(up: RunningUp) -> None:
    done = oarlock("up", "--state-dir", str(up.state.root))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"an `oarlock up` runs here already (pid {up.process.pid})" in line
    until(lambda: up.ask("status")["ready"], 20, "the first one is as ready as it was")


@pytest.mark.parametrize("role", ["worker", "supervisor", "ingestor"])
def test_a_killed_process_comes_back_and_the_list_stays_true(up: RunningUp, role: str) -> None:
    before = up.processes()
    victim = next(each for each in before if each.role == role)
    os.kill(victim.pid, signal.SIGKILL)

    def whole_again() -> list[Process]:
        now = up.processes()
        complete = sorted(each.role for each in now) == sorted(each.role for each in before)
        return now if complete and victim not in now and all(is_alive(each) for each in now) else []

    now = until(whole_again, 40, f"another {role}")
    survivors = {each.pid for each in before if each.role not in {role, "worker"}}
    assert survivors <= {each.pid for each in now}
    assert len({each.rq_worker for each in now if each.rq_worker}) == 2


def test_redis_comes_back_on_its_port_and_the_work_goes_on(up: RunningUp, tmp_path: Path) -> None:
    url, epoch = up.state.read_redis_url(), up.ask("epoch")["epoch"]
    (victim,) = up.processes("redis")
    os.kill(victim.pid, signal.SIGKILL)
    until(lambda: [each for each in up.processes("redis") if each.pid != victim.pid], 30, "another Redis")
    assert up.state.read_redis_url() == url
    path = tmp_path / "late.yaml"
    path.write_text(LATE)
    apply(up, path)
    until(lambda: oarlock("status", "--state-dir", str(up.state.root)).returncode == 0, 20, "a new epoch is open")
    until(lambda: up.ready_sets().get("default/late") == (4, 4), 20, "pods made after the loss")
    assert up.ask("epoch")["epoch"] > epoch


def apply(up: RunningUp, path: Path) -> None:
    import asyncio

    from oarlock.cluster.access import config
    from oarlock.sandbox.manifests.applying import apply as apply_items
    from oarlock.sandbox.manifests.checks import check
    from oarlock.sandbox.manifests.documents import read_all

    items = check(read_all([str(path)])[0]).items
    asyncio.run(apply_items(config.load(up.state.kubeconfig), items))


def test_down_leaves_the_evidence_and_nothing_else(tmp_path: Path) -> None:
    up = RunningUp(tmp_path / "state", "--workers", "1", "--ingestors", "1", "--nodes", "1")
    processes = up.processes()
    done = oarlock("down", "--state-dir", str(up.state.root))
    assert (done.returncode, done.stdout) == (0, f"stopped {up.state.root}\n")
    assert up.process.wait(20) == 0
    assert not any(is_alive(each) for each in processes)
    assert sorted(path.name for path in up.state.root.iterdir()) == ["audit.log", "logs"]
    logs = sorted(path.name for path in up.state.logs.iterdir())
    assert logs == ["api.log", "ingestor-1.log", "redis.log", "supervisor.log"]
    again = oarlock("down", "--state-dir", str(up.state.root))
    assert (again.returncode, again.stdout) == (0, f"no `oarlock up` runs in {up.state.root}\n")
    assert oarlock("status", "--state-dir", str(up.state.root)).returncode == 1


def test_when_up_is_killed_its_children_die(tmp_path: Path) -> None:
    up = RunningUp(tmp_path / "state", "--nodes", "1")
    processes = up.processes()
    assert len(processes) == 7
    up.process.kill()
    up.process.wait()
    all_gone(processes)
    assert oarlock("down", "--state-dir", str(up.state.root)).returncode == 0
    assert sorted(path.name for path in up.state.root.iterdir()) == ["audit.log", "logs"]


def test_a_full_disk_ends_nothing_and_keeps_nothing_from_ending(tmp_path: Path) -> None:
    up = RunningUp(tmp_path / "state", "--workers", "1")
    for name in ("up.json", "processes.json"):  # a draft of that name can no longer be written
        (tmp_path / "state" / f".{name}.{up.process.pid}").mkdir()
    os.kill(up.processes("worker")[0].pid, signal.SIGKILL)
    until(lambda: "untold" in up.err.read_text(), 30, "the list of processes is not told")
    assert up.process.poll() is None
    assert up.stop() == 0
    assert sorted(entry.name for entry in (tmp_path / "state").iterdir()) == ["audit.log", "logs"]


def test_when_the_api_server_ends_all_ends(tmp_path: Path) -> None:
    up = RunningUp(tmp_path / "state", "--workers", "1", "--ingestors", "1")
    processes = up.processes()
    os.kill(up.processes("api")[0].pid, signal.SIGKILL)
    assert up.process.wait(20) == 1
    all_gone(processes)
    assert "oarlock: the API server ended (exit code -9" in up.err.read_text()


def test_control_c_ends_it_and_a_temporary_directory_goes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "oarlock.cli", "up", "--workers", "1", "--ingestors", "1"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=environment(TMPDIR=str(tmp_path)),
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("oarlock is up")
    (state,) = tmp_path.glob(f"{PREFIX}*")
    assert oarlock("queue", TMPDIR=str(tmp_path)).returncode == 0, "it is found by itself"
    pids = [Process(**each) for each in json.loads((state / "processes.json").read_text())]
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    all_gone(pids)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--api-port", "--redis-port"])
def test_a_port_in_use(option: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = oarlock("up", option, str(port), "--state-dir", str(tmp_path / "s"))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{option} {port}" in line
    assert "in use" in line
    assert sorted(path.name for path in (tmp_path / "s").rglob("*") if path.is_file() and path.suffix != ".log") == []


def test_a_chosen_port_is_used(tmp_path: Path) -> None:
    port = free_port()
    size = ("--workers", "0", "--ingestors", "1", "--nodes", "1")
    up = RunningUp(tmp_path / "state", "--api-port", str(port), *size, "--no-api-token")
    assert up.state.read_up()["api_url"] == f"http://127.0.0.1:{port}"
    assert up.token() == ""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/pods", timeout=10) as answer:
        assert answer.status == 200
    assert up.processes("worker") == []
    assert up.stop() == 0
