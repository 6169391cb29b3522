"""What wakes and scales the workers: figures that the ingestors serve, of the queues that are on, and of no other."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry

from oarlock.controllers.registry import all_queues
from oarlock.workers.metrics.families import FAMILIES, Scope
from oarlock.workers.metrics.fleet_reader import FleetFigures, QueueFigures
from oarlock.workers.metrics.latest import Look, put_look
from oarlock.workers.metrics.samples import Samples
from oarlock.workers.process.kinds import enabled_queues
from tests.chart.engine import CHART, NEEDED, ci_values, merged, render

KEDA = {"worker": {"processes": 2, "autoscaling": {"mode": "keda"}}}


def triggers(*values: dict[str, Any]) -> list[dict[str, Any]]:
    return render(merged(NEEDED, KEDA, *values)).one("ScaledObject")["spec"]["triggers"]  # type: ignore[no-any-return]


class _Of(Collector):
    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def collect(self) -> Any:
        return self._samples.collect()


METRICS = {
    "queued": "workqueue_depth",
    "in_work": "oarlock_keys_in_work",
    "delayed": "oarlock_keys_delayed",
    "parked": "oarlock_keys_parked",
}


def served(shard: str = "0", **figures: int) -> str:
    """What /metrics says of a fleet at rest, but for these figures of replicaset."""
    rest: QueueFigures = dict.fromkeys(METRICS.values(), 0)
    queues = dict.fromkeys(all_queues(), rest)
    queues["replicaset"] = rest | {METRICS[name]: value for name, value in figures.items()}
    samples = Samples()
    put_look(samples, Look((FleetFigures(shard, 1, True, "OPEN", 0, 0, queues),), 0.0))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Of(samples))
    return generate_latest(registry).decode()


def value(text: str, selector: str) -> float:
    """As KEDA's metrics-api scaler: the sample that has the name and the labels. Fails where there is none.

    (upstream: kedacore/keda, pkg/scalers/metrics_api_scaler.go)
    """
    named = re.fullmatch(r"(\w+)\{(.*)\}", selector)
    assert named
    labels = dict(re.findall(r'(\w+)="([^"]*)"', named[2]))
    (found,) = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == named[1] and labels.items() <= sample.labels.items()
    ]
    return float(found)


def wakes(text: str) -> list[str]:
    """Triggers above their threshold of activation."""
    return [
        each["metadata"]["valueLocation"]
        for each in triggers()
        if value(text, each["metadata"]["valueLocation"]) > float(each["metadata"]["activationTargetValue"])
    ]


def test_a_fleet_at_rest_may_sleep() -> None:
    assert wakes(served()) == []


@pytest.mark.parametrize(
    ("figure", "metric"),
    {
        "queued": 'workqueue_depth{name="replicaset",shard="0"}',
        "in_work": 'oarlock_keys_in_work{queue="replicaset",shard="0"}',
        "delayed": 'oarlock_keys_delayed{queue="replicaset",shard="0"}',
        "parked": 'oarlock_keys_parked{queue="replicaset",shard="0"}',
    }.items(),
)
def test_one_key_wakes_the_workers(figure: str, metric: str) -> None:
    """Also one that nobody would queue again while no worker runs: held by a dead one, delayed, parked."""
    assert wakes(served(**{figure: 1})) == [metric]


def test_a_trigger_for_each_queue_that_is_on_and_each_shard() -> None:
    def queues(*values: dict[str, Any]) -> set[tuple[str, str]]:
        found = [each["metadata"] for each in triggers(*values)]
        named = [re.search(r'(?:name|queue)="([^"]+)",shard="(\d+)"', each["valueLocation"]) for each in found]
        return {(match[1], match[2]) for match in named if match}

    assert queues() == {(queue, "0") for queue in all_queues()}
    assert queues({"controllers": {"daemonset": False}}) == {(each, "0") for each in enabled_queues("*,-daemonset")}
    assert queues({"shards": 2}) == {(queue, shard) for queue in all_queues() for shard in "01"}
    urls = {(each["metadata"]["valueLocation"][-3], each["metadata"]["url"]) for each in triggers({"shards": 2})}
    assert urls == {
        ("0", "http://oarlock-ingestor.oarlock.svc:8080/metrics"),
        ("1", "http://oarlock-ingestor.oarlock.svc:8081/metrics"),
    }


def test_only_what_is_queued_makes_more_pods() -> None:
    for each in triggers():
        metadata = each["metadata"]
        target = "100" if metadata["valueLocation"].startswith("workqueue_depth") else "1000000"
        assert metadata["targetValue"] == target


def test_prometheus_is_asked_for_figures_there_are() -> None:
    found = render(ci_values(CHART / "ci" / "keda-prometheus-values.yaml")).one("ScaledObject")["spec"]["triggers"]
    queries = " ".join(each["metadata"]["query"] for each in found)
    names = set(re.findall(r"\b(?:workqueue|oarlock)_\w+", queries))
    assert names == {"workqueue_depth", "oarlock_keys_in_work", "oarlock_keys_delayed", "oarlock_keys_parked"}
    for name in names:
        assert FAMILIES[name].scope is Scope.FLEET  # of which max is the figure, and a sum would count it twice
        assert {"name", "shard"} <= {*FAMILIES[name].labels} or {"queue", "shard"} <= {*FAMILIES[name].labels}
    assert queries.count("max by") == queries.count(', cluster="prod"}') == len(found)
    assert all(queue in queries for queue in all_queues())


def test_the_hpa_follows_a_figure_of_the_fleet() -> None:
    spec = render(merged(NEEDED, {"worker": {"autoscaling": {"mode": "hpa"}}})).one("HorizontalPodAutoscaler")["spec"]
    (metric,) = spec["metrics"]
    assert FAMILIES[metric["external"]["metric"]["name"]].scope is Scope.FLEET
    assert metric["external"]["target"] == {"type": "Value", "value": "1"}
    assert spec["minReplicas"] >= 1


def test_sleep_is_chosen_never_given() -> None:
    """KEDA's own pods may be the fleet's to make: docs/chart.md."""
    assert render(merged(NEEDED, KEDA)).one("ScaledObject")["spec"]["minReplicaCount"] == 1
