"""A cluster outside pytest: how it starts, what it leaves behind, and what goes wrong."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from oarlock.broker.memory.threads import SharedStore
from oarlock.broker.values.errors import EpochOver
from oarlock.testing import Cluster, NotInTime, NotStarted, ready
from oarlock.workers.process.settings import Settings
from tests.testing.manifests import workload


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def threads() -> set[str]:
    """Of clusters. Those of users' functions, which these tests have none of, may still be ending from tests before."""
    names = {each.name for each in threading.enumerate()}
    ours = {each for each in names if each == "io" or each.startswith("oarlock")}
    return {each for each in ours if not each.startswith("oarlock function")}


def test_nothing_is_left(folder: Path) -> None:
    before = threads()
    with Cluster(redis=False) as cluster:
        assert threads() == before | {"io", "oarlock ingestor", "oarlock leases", "oarlock worker"}
        address = ("127.0.0.1", int(cluster.url.rpartition(":")[2]))
        assert cluster.kubeconfig.parent.parent == folder
        cluster.create(workload(replicas=1))
        cluster.wait("deployment/web")
    assert threads() == before
    assert list(folder.iterdir()) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


@pytest.mark.parametrize(
    "use",
    [
        lambda it: it.url,
        lambda it: it.kubeconfig,
        lambda it: it.get("pod/web"),
        lambda it: it.wait("pods"),
        lambda it: it.fault(500),
        lambda it: it.time.now(),
        lambda it: it.fresh().__enter__(),
    ],
)
def test_before_and_after_its_life(folder: Path, use: Callable[[Cluster], object]) -> None:
    with pytest.raises(NotStarted, match="the cluster does not run: use `with Cluster"):
        use(Cluster())
    with Cluster(redis=False, controllers="") as cluster:
        """That was its life."""
    with pytest.raises(NotStarted, match="the cluster does not run"):
        use(cluster)


def test_an_option_that_there_is_not() -> None:
    with pytest.raises(TypeError, match="'nodez'"):
        Cluster(nodez=1)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("nodes", -1, "nodes=-1 has to be a whole number, 0 or more"),
        ("nodes", "3", "nodes='3' has to be a whole number"),
        ("pods_per_node", 1.5, "pods_per_node=1.5 has to be a whole number"),
        ("ready_ms", -1, "ready_ms=-1 has to be a number of milliseconds, 0 or more"),
        ("terminate_ms", float("nan"), "terminate_ms=nan has to be a number of milliseconds"),
        ("controllers", ["deployment"], r"controllers=\['deployment'\] has to be a text"),
    ],
)
def test_an_option_that_cannot_be(option: str, value: object, told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}"):
        Cluster(**{option: value})


def test_a_controller_that_there_is_not(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotStarted, match=r"^controllers='job': there is no 'job'; there are \*, replicaset, "):
        Cluster(controllers="job").start()
    assert list(folder.iterdir()) == []
    assert "Traceback" not in capfd.readouterr().err


def test_two_at_a_time_know_nothing_of_one_another(folder: Path) -> None:
    with Cluster(redis=False) as one, Cluster(redis=False, nodes=1) as other:
        one.create(workload(replicas=1))
        one.wait("deployment/web")
        assert other.list("deployments") == []
        assert [len(each.list("nodes")) for each in (one, other)] == [3, 1]


async def test_body(cluster: Cluster) -> int:
    cluster.create(workload(replicas=2))
    waiting = asyncio.create_task(cluster.wait_async("deployment/web", ready, timeout_s=20))
    ticks = 0
    while not waiting.done():
        ticks += 1
        await asyncio.sleep(0.001)
    await waiting
    return ticks


test_body.__test__ = False  # type: ignore[attr-defined]


def test_async_with(folder: Path) -> None:
    """A wait leaves the loop free."""

    async def main() -> int:
        async with Cluster(redis=False) as cluster:
            return await test_body(cluster)

    assert asyncio.run(main()) > 1
    assert list(folder.iterdir()) == []


def test_only_some_controllers_or_none(folder: Path) -> None:
    with Cluster(redis=False, controllers="replicaset") as cluster:
        cluster.create(workload())
        cluster.create(workload("ReplicaSet", "own", 1))
        cluster.wait("replicaset/own")
        assert len(cluster.list("replicasets")) == 1
    with Cluster(redis=False, controllers="", nodes=1) as cluster:
        cluster.create(workload("ReplicaSet", "own", 1))
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}}
        cluster.create({**pod, "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
        cluster.wait("pod/bare")
        assert len(cluster.list("pods")) == 1


def test_a_failed_start_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = threads()
    monkeypatch.setattr("oarlock.testing.running.START_LIMIT_S", 0.3)

    def refuse(self: object, epoch: int) -> None:
        raise EpochOver("of a test")

    monkeypatch.setattr("oarlock.testing.fleet.data.MemoryData.bootstrap", refuse)
    with pytest.raises(NotStarted, match=r"the controllers did not start: no epoch was open within 0.3 s"):
        Cluster(redis=False).start()
    assert threads() == before
    assert list(folder.iterdir()) == []


def test_a_fleet_that_ended_is_told_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(redis=False) as cluster:
        broken = "oarlock.workers.turn.engine.engine.Engine.claim"
        with monkeypatch.context() as patch:
            patch.setattr(broken, lambda *_: (_ for _ in ()).throw(RuntimeError("a bug")))
            patch.setattr(threading, "excepthook", lambda _: None)
            with pytest.raises(NotInTime, match="the controllers have ended: RuntimeError: a bug"):
                cluster.wait("deployment/none", timeout_s=20)


def test_lost_data_are_another_epoch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a lost Redis: the ingestor begins it once no earlier write can land, and another worker works in it."""
    quick = partial(Settings, lease_ms=900, renew_every_ms=250, request_timeout_ms=200, send_margin_ms=100)
    monkeypatch.setattr("oarlock.testing.running.Settings", quick)
    stores: list[SharedStore] = []
    monkeypatch.setattr("oarlock.testing.fleet.data.SharedStore", lambda clock: noted(stores, SharedStore(clock)))
    with Cluster(redis=False) as cluster:
        cluster.create(workload(replicas=1))
        cluster.wait("deployment/web")
        (store,) = stores
        before = store.epoch
        with store.changed:
            store.flush()
        cluster.patch("deployment/web", {"spec": {"replicas": 2}})
        cluster.wait("deployment/web")
        lease = cluster.get("lease/oarlock", namespace="kube-system")
        assert int(lease["metadata"]["annotations"]["oarlock.io/epoch"]) == store.epoch > before
        cluster.wait("pods", count=2)


def noted(stores: list[SharedStore], store: SharedStore) -> SharedStore:
    stores.append(store)
    return store


def test_without_logging_set_up_nothing_is_printed() -> None:
    code = "from oarlock.testing import Cluster\nwith Cluster(redis=False): pass"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout + done.stderr == ""


def test_a_killed_process_leaves_no_server(tmp_path: Path) -> None:
    code = (
        "import os, signal\nfrom oarlock.testing import Cluster\n"
        "cluster = Cluster(redis=False).start()\nprint(cluster.url, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    assert done.returncode == -9
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(done.stdout.strip().rpartition(":")[2])))


def test_the_environment_asks_for_redis(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARLOCK_TEST_REDIS", "1")
    with Cluster() as cluster:
        assert (cluster.kubeconfig.parent / "redis" / "users.acl").exists()
        cluster.create(workload(replicas=1))
        cluster.wait("deployment/web")
    assert list(folder.iterdir()) == []


def test_a_redis_server_is_started_by_the_main_thread_only(folder: Path) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(NotStarted, match="start it on the main thread"):
        pool.submit(Cluster(redis=True).start).result()
    assert list(folder.iterdir()) == []
