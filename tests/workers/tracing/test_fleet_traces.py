"""The traces of a whole `oarlock up`, by its real exporters: events, waits, turns and writes of several processes."""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from oarlock.broker import epoch
from oarlock.broker.redis_broker import RedisBroker
from tests.e2e.e2e_helpers import RunningUp, until
from tests.e2e.e2e_kubectl import Kubectl, kubectl_of, need_kubectl, template
from tests.workers.tracing.collector import Collector, SeenSpan

pytestmark = [pytest.mark.kubectl]


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def up(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUp]:
    need_kubectl()
    asked = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "200"}
    running = RunningUp(tmp_path_factory.mktemp("up") / "state", "--nodes", "2", **asked)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def kubectl(up: RunningUp, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return kubectl_of(up, tmp_path_factory.mktemp("home"))


def replicaset(name: str, replicas: int) -> dict[str, object]:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template(name)}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def whole(collector: Collector, key: str, write: str) -> list[SeenSpan] | None:
    """The trace of a turn over a key that made such a write, once all of its processes have sent their spans."""
    for spans in collector.traces().values():
        if any(span.facts.get("oarlock.key") == key for span in spans):
            names = {span.name.split(" ")[0] for span in spans} | {span.name for span in spans}
            if {"event", "queue", "replicaset turn", "replicaset key", write} <= names:
                return spans
    return None


def test_the_life_of_a_key_is_one_trace(collector: Collector, kubectl: Kubectl) -> None:
    inside = kubectl.inside("traced")
    inside.apply(replicaset("web", 1))
    spans = until(lambda: whole(collector, "traced/web", "create pods"), 40, "the trace of the first turn")
    (root,) = (span for span in spans if span.name == "replicaset key")
    assert root.parent == ""
    (turn,) = (span for span in spans if span.name == "replicaset turn")
    (queue,) = (span for span in spans if span.name == "queue")
    events = [span for span in spans if span.name.startswith("event ")]
    writes = [span for span in spans if span.name == "create pods"]
    assert {span.parent for span in (turn, queue, *events)} == {root.id}
    assert {span.parent for span in writes} == {turn.id}
    assert {span.service for span in (root, turn, queue, *writes)} == {"oarlock-worker"}
    assert {span.service for span in events} == {"oarlock-ingestor"}
    assert events[0].facts["oarlock.trigger"] == queue.facts["oarlock.trigger.first"] == "set replicasets/traced/web"
    assert min(span.begun_ns for span in events) <= queue.begun_ns + 5_000_000, "an event comes before the wait"
    assert root.begun_ns == queue.begun_ns <= queue.ended_ns <= turn.begun_ns
    for span in writes:
        assert turn.begun_ns <= span.begun_ns <= span.ended_ns <= turn.ended_ns <= root.ended_ns
        assert (span.failed, span.facts["http.response.status_code"]) == (False, 201)
    assert (turn.failed, turn.facts["oarlock.verdict"], turn.facts["oarlock.did"][:11]) == (False, "ok", "create pods")


def test_exemplars_of_the_metrics_name_these_traces(collector: Collector, kubectl: Kubectl, up: RunningUp) -> None:
    kubectl.inside("figures").apply(replicaset("web", 1))
    asked = urllib.request.Request(
        f"{up.state.read_up()['metrics']['supervisor']}/metrics",
        headers={"Accept": "application/openmetrics-text;version=1.0.0"},
    )

    def told() -> set[str]:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            families = text_string_to_metric_families(answer.read().decode())
            exemplars = [sample.exemplar for family in families for sample in family.samples if sample.exemplar]
        return {each.labels["trace_id"] for each in exemplars} & collector.traces().keys()

    until(told, 40, "an exemplar whose trace has come")


def test_a_write_that_is_refused_is_an_error(collector: Collector, kubectl: Kubectl) -> None:
    inside = kubectl.inside("tight")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    inside.apply(quota, replicaset("web", 1))

    def refused() -> list[SeenSpan]:
        failed = [span for span in list(collector.spans) if span.name == "create pods" and span.failed]
        return [span for span in failed if span.facts["http.response.status_code"] == 403]

    span = until(refused, 40, "a refused write")[0]
    assert "exceeded quota" in span.error
    (turn,) = until(lambda: [each for each in collector.spans if each.id == span.parent], 20, "its turn")
    assert (turn.facts["oarlock.key"], turn.facts["oarlock.verdict"]) == ("tight/web", "retry")


def test_the_turn_after_a_lost_one_says_whose_it_was(collector: Collector, kubectl: Kubectl, up: RunningUp) -> None:
    inside = kubectl.inside("killed")
    inside.apply(replicaset("web", 200))
    admin = up.redis()
    keys = RedisBroker(admin, epoch.current(admin).epoch).keys
    killed: list[str] = []

    def lost() -> list[SeenSpan]:
        lock = admin.hget(keys.locks("replicaset"), "killed/web")
        holder = lock.decode().split()[0].removeprefix("holder=") if lock else ""
        victim = [each for each in up.processes("worker") if each.rq_worker == holder]
        if victim and holder not in killed and len(killed) < 5:
            os.kill(victim[0].pid, signal.SIGKILL)
            killed.append(holder)
        return [span for span in list(collector.spans) if span.facts.get("oarlock.lost") in killed]

    turn = until(lost, 60, "the turn after one that was lost", pause_s=0.005)[0]
    assert turn.name == "replicaset turn"
    assert "lost" in turn.facts["oarlock.trigger.first"] + turn.facts["oarlock.trigger.last"]
