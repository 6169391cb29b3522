"""The arithmetic of the benchmark beside upstream's manager, with figures made up here instead of a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import versus_kcm
from benchmarks.versus_kcm_goals import GOALS, cost, speed
from benchmarks.versus_kcm_rollout import ReadyPods
from benchmarks.versus_kcm_run import Run, Shape
from benchmarks.versus_kcm_server import Around, requests_told
from benchmarks.versus_kcm_sides import OPEN, Upstream
from oarlock.cluster.resources import DAEMONSETS, DEPLOYMENTS, REPLICASETS
from tests import ROOT
from tests.benchmarks.runs.test_runs import documented

LARGE = Shape("one", REPLICASETS, 1, 4)


def run(side: str, pods_s: float, cpu_ms: float, load: float = 1.0) -> Run:
    return Run(side, LARGE, pods_s, pods_s + 1, {"a": cpu_ms, "b": cpu_ms}, 50.0, load)


def told(capsys: pytest.CaptureFixture[str]) -> tuple[str, dict[str, Any]]:
    text = capsys.readouterr().out
    return text, json.loads(text.splitlines()[-1])


def test_the_fleet_is_compared_within_a_round(capsys: pytest.CaptureFixture[str]) -> None:
    """Medians of each side alone would give another ratio: 4 s over 2 s."""
    upstream = [run("upstream", 1.0, 4.0), run("upstream", 4.0, 4.0), run("upstream", 8.0, 4.0)]
    fleet = [run("fleet", 2.0, 5.0), run("fleet", 2.0, 6.0), run("fleet", 8.0, 4.0)]
    versus_kcm._report({"large": {"upstream": upstream, "fleet": fleet}}, {"benchmark": "versus_kcm"})
    text, facts = told(capsys)
    assert facts["speed_large"] == 1.0
    assert facts["cpu_large"] == 1.25
    assert facts["large_upstream"]["cpu_ms_per_pod"] == 2.0, "two roles of 4 ms for 4 pods"
    assert facts["large_fleet"]["pods_s"] == 2.0
    assert facts["large_fleet"]["status_s"] == 3.0
    assert text.count("reached") == 1 + 2, "the heading, and both figures on their bounds or within"
    assert text.count("not measured") == len(GOALS) - 2


def test_a_missed_goal_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    sides = {"upstream": [run("upstream", 1.0, 4.0)], "fleet": [run("fleet", 2.0, 11.0)]}
    versus_kcm._report({"large": sides}, {"idle_p50_ms": 5.0, "idle_p99_ms": 20.1})
    text, facts = told(capsys)
    assert (facts["speed_large"], facts["cpu_large"]) == (0.5, 2.75)
    assert text.count("MISSED") == 3


def test_every_key_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    sides = {"upstream": [run("upstream", 1.0, 4.0)], "fleet": [run("fleet", 2.0, 11.0)]}
    shapes = versus_kcm._shapes(versus_kcm._parser().parse_args([]))
    versus_kcm._report(dict.fromkeys(shapes, sides), {"benchmark": "versus_kcm"})
    _, facts = told(capsys)
    listed = documented("versus_kcm")
    assert set(facts) <= listed
    assert {goal.fact for goal in GOALS} <= listed


def test_twice_as_fast_and_twice_as_dear_is_two() -> None:
    assert speed(upstream_s=4.0, fleet_s=2.0) == 2.0
    assert cost(upstream_ms=2.0, fleet_ms=4.0) == 2.0


def test_every_goal_has_a_figure_of_its_own() -> None:
    assert len({goal.fact for goal in GOALS}) == len(GOALS)


def test_shapes_scale_and_ask_for_what_they_say() -> None:
    options = versus_kcm._parser().parse_args(["--scale", "0.01"])
    shapes = versus_kcm._shapes(options)
    assert {name: shape.total for name, shape in shapes.items()} == {
        "large": 30,
        "many": 100,
        "daemonset": 5,
        "limited": 300,
        "rolled_many": 20,
        "rolled_large": 10,
    }
    many = shapes["many"].objects()
    assert len({each["metadata"]["name"] for each in many}) == 10
    assert {each["spec"]["replicas"] for each in many} == {10}
    assert shapes["daemonset"].kind == DAEMONSETS
    assert shapes["daemonset"].controllers == "daemonset"
    rolled = shapes["rolled_many"]
    assert {each["kind"] for each in rolled.objects()} == {"Deployment"}
    assert {"deployment", "replicaset"} <= set(rolled.controllers.split(","))


def test_a_rollout_is_timed_until_it_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    """Pods of both sides were there after 4 s; 5 s and 10 s is when the last status said that all is done."""
    shape = Shape("rolled", DEPLOYMENTS, 2, 2)
    upstream = replace(run("upstream", 4.0, 4.0), shape=shape)
    inside = {"deployment turns": 6, "replicaset turns": 4, "scripts called": 30}
    fleet = replace(upstream, side="fleet", status_s=10.0, inside=inside, redis_bytes=2_000)
    versus_kcm._report({"rolled_many": {"upstream": [upstream], "fleet": [fleet]}}, {})
    _, facts = told(capsys)
    assert facts["speed_rolled_many"] == 0.5
    figures = facts["rolled_many_fleet"]
    assert (figures["turns"], figures["scripts"], figures["redis_bytes_per_pod"]) == (10, 30, 500)
    assert "turns" not in facts["rolled_many_upstream"]


def test_a_deployment_is_rolled_out_when_its_status_has_all_pods_of_the_template() -> None:
    pods = ReadyPods.__new__(ReadyPods)
    pods.done = {}
    status = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "observedGeneration": 2}
    for changed in ({"replicas": 4}, {"updatedReplicas": 2}, {"availableReplicas": 2}, {"observedGeneration": 1}, {}):
        assert pods.rolled_out(2) == 0, "not before the last of them"
        found = {"metadata": {"name": "web", "generation": 2}, "spec": {"replicas": 3}, "status": status | changed}
        pods._deployment("MODIFIED", found)
    assert (pods.rolled_out(1), pods.rolled_out(2), pods.rolled_out(3)) == (1, 1, 0)


def test_programs_that_are_missing_are_told_before_anything_is_started(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.versus_kcm"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "KUBEBUILDER_ASSETS": str(tmp_path / "nowhere"), "OARLOCK_KUBERNETES_BIN": ""},
        timeout=60,
        check=False,
    )
    said = f"benchmark: KUBEBUILDER_ASSETS={tmp_path / 'nowhere'}: there is no such directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.parametrize(
    ("version", "controller", "has_port"),
    [("1.20.2", "--controllers=replicaset", True), ("1.36.2", "--controllers=replicaset-controller", False)],
)
def test_upstream_is_given_flags_that_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, controller: str, has_port: bool
) -> None:
    manager = tmp_path / "kube-controller-manager"
    manager.write_text(f"#!/bin/sh\necho Kubernetes v{version}\n")
    manager.chmod(0o755)
    monkeypatch.setenv("OARLOCK_KUBERNETES_BIN", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    started: list[list[str]] = []

    class Place:
        def run_beside(self, command: list[str], name: str, env: dict[str, str]) -> None:
            started.append(command)

    Upstream(Place(), "replicaset", OPEN).start_one()  # type: ignore[arg-type]
    ((program, *flags),) = started
    assert program == str(manager)
    assert (controller in flags, "--port=0" in flags) == (True, has_port)
    assert "--kube-api-qps=5000" in flags


def test_requests_are_told_by_verb_and_resource_without_watches() -> None:
    metrics = """# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="pods",scope="resource",subresource="",verb="POST"} 3
apiserver_request_total{code="409",resource="pods",scope="resource",subresource="",verb="POST"} 1
apiserver_request_total{code="200",resource="replicasets",scope="resource",subresource="status",verb="PATCH"} 2e+01
apiserver_request_total{code="0",resource="pods",scope="cluster",subresource="",verb="WATCH"} 7
apiserver_request_duration_seconds_count{resource="pods",verb="POST"} 9
"""
    assert requests_told(metrics) == {"POST pods": 4, "PATCH replicasets/status": 20}


def test_what_is_beside_a_run_is_told_a_pod(capsys: pytest.CaptureFixture[str]) -> None:
    around = Around({"etcd": 2.0, "client": 2.0}, 0.25, {"POST pods": 4, "POST events": 1})
    fleet = replace(run("fleet", 2.0, 11.0), around=around)
    versus_kcm._report({"large": {"upstream": [run("upstream", 1.0, 4.0)], "fleet": [fleet]}}, {})
    _, facts = told(capsys)
    assert facts["large_fleet"]["server_cpu_ms_per_pod"] == 1.0
    assert facts["large_fleet"]["cores_idle"] == 0.25
    assert facts["large_fleet"]["requests"] == 5
