"""`oarlock operator`: a user's controllers in processes of their own, on a real Redis and the embedded API server."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.e2e_helpers import RunningUp, oarlock, until
from tests.e2e.e2e_operators import DEPLOYMENTS, LEASES, SERVICES, SITES, Objects, Running, site, website_file
from tests.whole_lines import whole_lines

SITES_MADE = 60


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUp]:
    running = RunningUp(tmp_path_factory.mktemp("up") / "state", "--workers", "1", "--ingestors", "1")
    yield running
    running.stop()


def started(up: RunningUp, file: Path, *more: str) -> Running:
    where = ("--redis", up.state.read_redis_url(), "--kubeconfig", str(up.state.kubeconfig))
    running = Running(file.with_suffix(".log"), "operator", str(file), *where, *more, OARLOCK_EMBEDDED="1")
    try:
        until(lambda: "event=started worker=" in running.said, 40, "a worker of the operator runs")
    except BaseException:
        print(running.said)
        running.stop()
        raise
    return running


def test_a_killed_worker_loses_nothing_and_new_files_look_at_every_object(up: RunningUp, tmp_path: Path) -> None:
    objects, file = Objects(up.state.kubeconfig), website_file(tmp_path)
    names = [f"site-{number}" for number in range(SITES_MADE)]
    running = started(up, file, "--workers", "3", "--install-crds")
    other = started(up, website_file(tmp_path / "apart", "other.py"), "--workers", "1", "--fleet-id", "second")
    other.stop()
    try:
        until(lambda: len(running.workers()) >= 3, 20, "all workers run")
        objects.create(SITES, *map(site, names))
        os.kill(running.workers()[0], signal.SIGKILL)

        def done() -> bool:
            sites = objects.all(SITES).values()
            return all(each.get("status", {}).get("ready") == 1 for each in sites) and len(sites) == SITES_MADE

        until(done, 60, "every site is ready", pause_s=0.3)
        until(lambda: "code=-9" in running.said, 20, "the death of the worker is told")
        for resource in (DEPLOYMENTS, SERVICES):
            assert sorted(name for name in objects.all(resource) if name.startswith("site-")) == sorted(names)

        def made() -> set[int]:
            counts = creates(up)
            found = {counts[kind, name] for kind in ("deployments", "services") for name in names}
            return set() if 0 in found else found

        assert until(made, 20, "the audit log has every create") == {1}
        assert {"oarlock", "oarlock-website", "oarlock-second"} <= objects.all(LEASES, "kube-system").keys()
        inspect(up, file)
        assert running.stop() == 0

        file.write_text(file.read_text().replace('"containerPort": 80', '"containerPort": 8080'))
        running = started(up, file, "--workers", "2")
        until(lambda: ports(objects) == {8080}, 60, "every Deployment is as the new file wants it", pause_s=0.3)
    except BaseException:
        print(running.said[-6_000:])
        raise
    finally:
        assert running.stop() == 0


def ports(objects: Objects) -> set[int]:
    made = objects.all(DEPLOYMENTS).values()
    containers = [each["spec"]["template"]["spec"]["containers"][0] for each in made]
    return {each["ports"][0]["containerPort"] for each in containers}


def creates(up: RunningUp) -> Counter[tuple[str, str]]:
    """Resource and name -> how many answered requests made it."""
    made: Counter[tuple[str, str]] = Counter()
    for line in whole_lines(up.state.audit_log):
        entry = json.loads(line)
        about = entry["objectRef"]
        if entry["responseStatus"]["code"] == 201:
            made[about["resource"], about.get("name", "")] += 1
    return made


def inspect(up: RunningUp, file: Path) -> None:
    """The commands that look into a fleet know an operator's by its file."""
    about = ("--operator", str(file), "--state-dir", str(up.state.root))
    (queue,) = json.loads(oarlock("queue", "-o", "json", *about).stdout)
    assert queue["name"] == "website"
    assert len(json.loads(oarlock("get", "websites", "-o", "json", *about).stdout)) == SITES_MADE

    def explained() -> str:
        said = oarlock("explain", "web/default/site-7", *about).stdout
        return said if "All is as it should be" in said else ""

    said = until(explained, 20, "the turn after that of the status has ended, too")
    assert "has children in the cache: Deployment site-7, Service site-7." in said
    assert "no epoch of the fleet nobody" in oarlock("queue", "--fleet-id", "nobody", *about).stderr
    builtin = json.loads(oarlock("queue", "-o", "json", "--state-dir", str(up.state.root)).stdout)
    assert "website" not in {each["name"] for each in builtin}


def test_a_kind_that_the_cluster_does_not_serve_is_refused(up: RunningUp, tmp_path: Path) -> None:
    file = website_file(tmp_path, "elsewhere.py")
    file.write_text(file.read_text().replace('"example.com/v1"', '"nowhere.example.com/v1"'))
    where = ("--redis", up.state.read_redis_url(), "--kubeconfig", str(up.state.kubeconfig))
    refused = oarlock("operator", str(file), *where, "--workers", "1", OARLOCK_EMBEDDED="1")
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        f"oarlock: {file}: the cluster does not serve websites; define them with --install-crds, or: oarlock crd {file}"
        " | kubectl apply -f -"
    ]


def test_a_kind_of_others_that_the_cluster_does_not_serve_is_told_apart(up: RunningUp, tmp_path: Path) -> None:
    """`oarlock crd` prints no definition of it. Its plural was guessed."""
    file = tmp_path / "certificates.py"
    file.write_text(
        "import oarlock\n\n@oarlock.steps('v1 ServiceAccount', watches=[\n"
        "    oarlock.watch('example.com/v1 Certificate', names=lambda obj: [])])\n"
        "def certificates(obj, ctx): ...\n"
    )
    where = ("--redis", up.state.read_redis_url(), "--kubeconfig", str(up.state.kubeconfig))
    refused = oarlock("operator", str(file), *where, "--workers", "1", "--install-crds", OARLOCK_EMBEDDED="1")
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        f"oarlock: {file}: the cluster does not serve certificates (example.com/v1 Certificate): apply what defines it"
        ' first; where its plural is another one, name it as oarlock.Kind("example.com/v1", "Certificate", plural=...)'
    ]
