"""The chart through Helm's own engine: loaded once, rendered for one Kubernetes version, offline.

`helm_python` is Helm's Go SDK as a shared library (extra `chart`, with what validates). Where they are missing the
importing module is skipped with a reason, and fails in CI.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT

try:
    import helm_python
    import jsonschema  # noqa: F401
    from helm_python import _native
    from kubernetes_validate import utils as kubernetes_schemas  # noqa: F401
except ImportError:
    if os.environ.get("CI") == "true":
        raise
    pytest.skip("no Helm engine here: `make chart` installs it", allow_module_level=True)

CHART = ROOT / "helm" / "oarlock"
CI_VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
OLDEST, NEWEST = "v1.25.0", "v1.37.0"
NEEDED: Mapping[str, Any] = {
    "redis": {"existingSecret": "oarlock-redis"},
    "signing": {"existingSecret": "oarlock-signing"},
}
"""The least that the chart takes."""
Obj = dict[str, Any]
Refused = helm_python.HelmError


@dataclass(frozen=True)
class Rendered:
    """`objects`: all of them, in the order of their files; `by_file`: those of each template; `notes`: what is said."""

    objects: list[Obj]
    by_file: Mapping[str, list[Obj]]
    notes: str

    def of(self, kind: str, name: str = "") -> list[Obj]:
        return [
            each for each in self.objects if each["kind"] == kind and (not name or each["metadata"]["name"] == name)
        ]

    def one(self, kind: str, name: str = "") -> Obj:
        (found,) = self.of(kind, name)
        return found

    def pod(self, role: str) -> Obj:
        """The pod spec of a role's StatefulSet."""
        spec: Obj = next(
            each["spec"]["template"]["spec"]
            for each in self.of("StatefulSet")
            if each["metadata"]["labels"]["app.kubernetes.io/component"] == role
        )
        return spec

    def env(self, role: str) -> dict[str, str]:
        """Of its first container; what comes from a Secret as `secret NAME/KEY`."""
        entries = self.pod(role)["containers"][0]["env"]
        names = [each["name"] for each in entries]
        assert len(set(names)) == len(names), names
        return {each["name"]: each["value"] if "value" in each else _secret(each) for each in entries}


def _secret(entry: Obj) -> str:
    chosen = entry["valueFrom"]["secretKeyRef"]
    return f"secret {chosen['name']}/{chosen['key']}"


def merged(*values: Mapping[str, Any]) -> Obj:
    """Later ones win, maps are merged, as `helm -f a -f b` does."""
    whole: Obj = {}
    for each in values:
        for key, value in each.items():
            whole[key] = merged(whole.get(key, {}), value) if isinstance(value, Mapping) else value
    return whole


@functools.cache
def ci_values(path: Path) -> Obj:
    """As Helm itself reads them."""
    return helm_python.values_from_yaml(path.read_text())


@functools.cache
def _chart(folder: Path) -> Any:
    return helm_python.Chart.load(folder)


def render(
    values: Mapping[str, Any] = NEEDED,
    *,
    kube_version: str = NEWEST,
    name: str = "oarlock",
    namespace: str = "oarlock",
    chart: Path = CHART,
) -> Rendered:
    """Raises Refused with what Helm says. What comes back is shared: not to be changed."""
    return _render(json.dumps(values), kube_version, name, namespace, chart)


@functools.cache
def _render(values: str, kube_version: str, name: str, namespace: str, chart: Path) -> Rendered:
    options = {"name": name, "namespace": namespace, "kube_version": kube_version}
    answer = _native.call_string("helm_render", _chart(chart)._raw(), values, json.dumps(options))
    by_file: dict[str, list[Obj]] = {}
    notes = ""
    for path, text in sorted(json.loads(answer).items()):
        file = path.rpartition("/")[2]
        if file == "NOTES.txt":
            notes = text
        else:
            by_file[file] = [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]
    return Rendered([each for found in by_file.values() for each in found], by_file, notes)


def lint(values: Mapping[str, Any], kube_version: str = NEWEST) -> list[str]:
    """What `helm lint --strict` finds worse than a hint."""
    report = helm_python.lint(CHART, dict(values), strict=True, namespace="oarlock", kube_version=kube_version)
    assert report["total_charts_linted"] == 1
    return report["errors"] + [each["error"] for each in report["messages"] if each["severity"] > 1]


ALERT = """\
groups:
  - name: of-a-test
    rules:
      - alert: Waits
        expr: oarlock_oldest_queued_seconds > 60
        for: 5m
        labels: {severity: warning}
        annotations:
          summary: 'keys of {{ $labels.queue }} wait'
          runbook_url: https://example.com/runbook#waits
"""
DASHBOARD = '{"title": "Of a test", "panels": [{"legendFormat": "{{queue}}"}]}\n'


def furnished(folder: Path) -> Path:
    """A copy of the chart with one more alert and one more dashboard than it has."""
    copy = Path(shutil.copytree(CHART, folder / "oarlock"))
    for part in ("alerts", "dashboards"):
        (copy / part).mkdir(exist_ok=True)
    (copy / "alerts" / "of-a-test.yaml").write_text(ALERT)
    (copy / "dashboards" / "Of_a_test.json").write_text(DASHBOARD)
    return copy
