"""Each object that any file of ci/ gives is valid to the letter, for Kubernetes 1.25 and the newest with a schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chart.custom_kinds import SCHEMAS
from tests.chart.engine import (
    CI_VALUES,
    NEWEST,
    OLDEST,
    Obj,
    ci_values,
    furnished,
    jsonschema,
    kubernetes_schemas,
    render,
)

_read = functools.cache(kubernetes_schemas.schema_contents)  # it reads megabytes anew for each object


@pytest.fixture(autouse=True)
def _read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_schemas, "schema_contents", _read)


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return furnished(tmp_path_factory.mktemp("chart"))


def distinct(kube_version: str, chart: Path) -> Iterator[tuple[str, Obj]]:
    seen: set[str] = set()
    for path in CI_VALUES:
        for each in render(ci_values(path), kube_version=kube_version, chart=chart).objects:
            text = json.dumps(each, sort_keys=True)
            if text not in seen:
                seen.add(text)
                yield path.name, each


def validate(each: Obj, version: str) -> None:
    """Raises jsonschema.ValidationError. Kinds of others have schemas of ours; no other kind may lack one."""
    custom = SCHEMAS.get((each["apiVersion"], each["kind"]))
    if custom is not None:
        jsonschema.Draft202012Validator(custom).validate(each)
        return
    checked = kubernetes_schemas.validate(each, version, strict=True)
    assert checked == version, f"{each['kind']}: checked against {checked}"


@pytest.mark.parametrize("kube_version", [OLDEST, NEWEST])
def test_valid_to_the_letter(kube_version: str, chart: Path) -> None:
    version = kube_version.removeprefix("v").rpartition(".")[0]
    wrong, count = [], 0
    for file, each in distinct(kube_version, chart):
        count += 1
        try:
            validate(each, version)
        except jsonschema.ValidationError as error:
            wrong.append(f"{file}: {each['kind']} {each['metadata']['name']}: {list(error.path)}: {error.message}")
    assert not wrong, "\n".join(wrong)
    assert count > 80


def test_the_newest_is_the_newest() -> None:
    assert kubernetes_schemas.latest_version().startswith(NEWEST.removeprefix("v"))


def misspell(each: Obj, old: str, new: str) -> Obj:
    changed: Obj = json.loads(json.dumps(each).replace(f'"{old}"', f'"{new}"', 1))
    assert changed != each
    return changed


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("StatefulSet", "podManagementPolicy", "podManagment"),
        ("StatefulSet", "readOnlyRootFilesystem", "readOnlyRootFileSystem"),
        ("NetworkPolicy", "podSelector", "selector"),
        ("PodDisruptionBudget", "maxUnavailable", "maxUnavailabel"),
        ("ClusterRole", "apiGroups", "groups"),
        ("ScaledObject", "minReplicaCount", "minReplicas"),
        ("ServiceMonitor", "endpoints", "endpoint"),
        ("PrometheusRule", "groups", "rules"),
    ],
)
def test_a_wrong_field_is_found(kind: str, old: str, new: str, chart: Path) -> None:
    for _, each in distinct(NEWEST, chart):
        if each["kind"] == kind and f'"{old}"' in json.dumps(each):
            validate(each, "1.37")
            with pytest.raises(jsonschema.ValidationError):
                validate(misspell(each, old, new), "1.37")
            return
    pytest.fail(f"no {kind} with {old} is rendered")


def test_values_of_custom_kinds_are_strings_where_they_must() -> None:
    trigger: dict[str, Any] = {"type": "metrics-api", "metadata": {"targetValue": 5}}
    each = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "x"},
        "spec": {"scaleTargetRef": {"name": "x"}, "triggers": [trigger]},
    }
    with pytest.raises(jsonschema.ValidationError):
        validate(each, "1.37")
    trigger["metadata"]["targetValue"] = "5"
    validate(each, "1.37")
