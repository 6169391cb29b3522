"""ServiceMonitor, alerts and dashboards: what lies in the chart's folders is rendered as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.chart.engine import CHART, DASHBOARD, NEEDED, Rendered, ci_values, furnished, merged, render

VALUES = CHART / "ci" / "monitoring-values.yaml"


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnished(tmp_path_factory.mktemp("chart"))


def test_nothing_of_others_kinds_unless_asked_for() -> None:
    others = {each["apiVersion"] for each in render().objects if "." in each["apiVersion"].partition("/")[0]}
    assert others == {"rbac.authorization.k8s.io/v1", "networking.k8s.io/v1"}


def test_alerts_are_those_of_the_files(chart: Path) -> None:
    values = merged(NEEDED, {"metrics": {"prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}}}})
    rule = render(values, chart=chart).one("PrometheusRule")
    files = sorted((chart / "alerts").glob("*.yaml"))
    groups = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    assert rule["spec"]["groups"] == groups
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert "keys of {{ $labels.queue }} wait" in json.dumps(rule)  # templates are left to Prometheus


def test_runbook_links_lead_to_where_the_repository_can_be_read(chart: Path) -> None:
    base = ci_values(VALUES)["metrics"]["prometheusRule"]["runbookBaseUrl"]
    rule = render(ci_values(VALUES), chart=chart).one("PrometheusRule")
    alerts = [each for group in rule["spec"]["groups"] for each in group["rules"] if "alert" in each]
    links = [each["annotations"]["runbook_url"] for each in alerts]
    assert "https://example.com/runbook#waits" in links  # a whole one stays
    assert all(link.startswith((base, "https://example.com/")) for link in links)


def dashboards(rendered: Rendered) -> dict[str, str]:
    found = [each for each in rendered.of("ConfigMap") if "-dashboard-" in each["metadata"]["name"]]
    for each in found:
        assert each["metadata"]["namespace"] == "monitoring"
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert each["metadata"]["annotations"] == {"grafana_folder": "Kubernetes"}
        assert len(json.dumps(each)) < 1_000_000  # a ConfigMap holds a MiB
    return {name: text for each in found for name, text in each["data"].items()}


def test_dashboards_are_those_of_the_files(chart: Path) -> None:
    found = dashboards(render(ci_values(VALUES), chart=chart))
    files = sorted((chart / "dashboards").glob("*.json"))
    assert found.keys() == {path.name for path in files}
    for path in files:
        assert json.loads(found[path.name]) == json.loads(path.read_text())
    assert found["Of_a_test.json"] == DASHBOARD.strip()


def test_the_monitor_meets_the_services() -> None:
    rendered = render(ci_values(CHART / "ci" / "keda-shards-values.yaml"))
    spec = rendered.one("ServiceMonitor")["spec"]
    for role in ("ingestor", "worker"):
        service = rendered.one("Service", f"oarlock-{role}")
        assert spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        (expression,) = spec["selector"]["matchExpressions"]
        assert service["metadata"]["labels"][expression["key"]] in expression["values"]
        ports = {port["name"] for port in service["spec"]["ports"]}
        assert {each["port"] for each in spec["endpoints"]} == ports == {"metrics", "metrics-1"}
    (redis,) = [each for each in rendered.of("Service") if each["metadata"]["name"] == "oarlock-redis"]
    assert redis["metadata"]["labels"]["app.kubernetes.io/component"] not in expression["values"]


def test_labels_of_ones_own_do_not_displace_the_charts() -> None:
    labels = {"app.kubernetes.io/name": "x", "team": "a"}
    values = merged(NEEDED, {"metrics": {"serviceMonitor": {"enabled": True, "labels": labels}}})
    found = render(values).one("ServiceMonitor")["metadata"]["labels"]
    assert found["team"] == "a"
    assert found["app.kubernetes.io/name"] == "oarlock"
