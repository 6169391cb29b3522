"""Every file of ci/ lints and renders, on the oldest and the newest Kubernetes, to objects that are of one piece."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from oarlock.workers.process.kinds import controller_names
from tests.chart.engine import CHART, CI_VALUES, NEEDED, NEWEST, OLDEST, ci_values, helm_python, lint, merged, render

BY_NAME = pytest.mark.parametrize("path", CI_VALUES, ids=lambda path: path.name.removesuffix("-values.yaml"))
OWN_NAMESPACE = ("PodDisruptionBudget", "StatefulSet", "Service", "ServiceAccount", "NetworkPolicy", "ConfigMap")


@BY_NAME
@pytest.mark.parametrize("kube_version", [OLDEST, NEWEST])
def test_lints_and_renders(path: Path, kube_version: str) -> None:
    values = ci_values(path)
    assert lint(values, kube_version) == []
    rendered = render(values, kube_version=kube_version)
    identities = [
        (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in rendered.objects
    ]
    assert len(set(identities)) == len(identities)
    roles = {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in rendered.of("StatefulSet")}
    assert {"ingestor", "worker"} <= roles


@BY_NAME
def test_selectors_meet_their_pods(path: Path) -> None:
    """Each StatefulSet, Service, budget and policy selects by labels that the pods it is for bear, and only those."""
    rendered = render(ci_values(path))
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in rendered.of("StatefulSet")]

    def met(selector: dict[str, str]) -> list[str]:
        return [labels["app.kubernetes.io/component"] for labels in pods if selector.items() <= labels.items()]

    for each in rendered.objects:
        component, spec = each["metadata"]["labels"].get("app.kubernetes.io/component"), each.get("spec", {})
        if each["kind"] == "StatefulSet":
            assert met(spec["selector"]["matchLabels"]) == [component]
            assert rendered.of("Service", spec["serviceName"])
        elif each["kind"] == "Service":
            assert met(spec["selector"]) == [component]
        elif each["kind"] == "PodDisruptionBudget":
            assert met(spec["selector"]["matchLabels"]) == [component]
    for role in ("ingestor", "worker"):
        for spread in rendered.pod(role).get("topologySpreadConstraints", []):
            assert met(spread["labelSelector"]["matchLabels"]) == [role]


def test_the_packaged_chart_renders_the_same(tmp_path: Path) -> None:
    """The archive has all that templates read, and none of the examples."""
    archive = Path(helm_python.package(CHART, destination=tmp_path))
    with tarfile.open(archive) as files:
        names = files.getnames()
    assert {"oarlock/values.schema.json", "oarlock/rbac/ingestor.yaml", "oarlock/redis/redis.conf"} <= set(names)
    assert not [name for name in names if "/ci/" in name]
    for path in CI_VALUES:
        assert render(ci_values(path), chart=archive) == render(ci_values(path))


def test_names_follow_the_release() -> None:
    rendered = render(name="blue", namespace="fleet")
    for each in rendered.objects:
        assert each["metadata"]["name"].startswith("blue-oarlock"), each["metadata"]
        if each["kind"] in OWN_NAMESPACE:
            assert each["metadata"]["namespace"] == "fleet"
    assert rendered.env("worker")["OARLOCK_REDIS_URL"].endswith("@blue-oarlock-redis.fleet.svc:6379/0")


def test_two_releases_in_one_namespace_do_not_meet() -> None:
    one, other = render(name="blue"), render(name="green")
    selector = one.one("StatefulSet", "blue-oarlock-worker")["spec"]["selector"]["matchLabels"]
    labels = other.one("StatefulSet", "green-oarlock-worker")["spec"]["template"]["metadata"]["labels"]
    assert not selector.items() <= labels.items()


def test_long_release_names_fit() -> None:
    rendered = render(name="a-release-name-as-long-as-helm-allows-it-to-be-53-sig")
    assert (
        max(len(each["metadata"]["name"]) for each in rendered.of("StatefulSet")) <= 52
    )  # room for the revision label


def test_nothing_of_the_fleet_is_made_by_the_fleet() -> None:
    """Pods of a Deployment or a DaemonSet would wait for the very controllers that they are."""
    for path in CI_VALUES:
        rendered = render(ci_values(path))
        assert not {each["kind"] for each in rendered.objects} & {"Deployment", "ReplicaSet", "DaemonSet"}
        for scaled in (*rendered.of("HorizontalPodAutoscaler"), *rendered.of("ScaledObject")):
            target = scaled["spec"]["scaleTargetRef"]
            assert target["kind"] == "StatefulSet"
            assert rendered.of("StatefulSet", target["name"])


def test_replicas_are_left_to_the_autoscaler() -> None:
    assert render().one("StatefulSet", "oarlock-worker")["spec"]["replicas"] == 2
    for mode in ("hpa", "keda"):
        values = merged(NEEDED, {"worker": {"autoscaling": {"mode": mode}}})
        assert "replicas" not in render(values).one("StatefulSet", "oarlock-worker")["spec"]


def test_versions_before_those_of_today_get_the_apis_they_have() -> None:
    values = merged(NEEDED, {"worker": {"autoscaling": {"mode": "hpa"}}})
    old = render(values, kube_version="v1.20.2")
    assert {each["apiVersion"] for each in old.of("PodDisruptionBudget")} == {"policy/v1beta1"}
    assert old.one("HorizontalPodAutoscaler")["apiVersion"] == "autoscaling/v2beta2"
    new = render(values, kube_version=OLDEST)
    assert {each["apiVersion"] for each in new.of("PodDisruptionBudget")} == {"policy/v1"}
    assert new.one("HorizontalPodAutoscaler")["apiVersion"] == "autoscaling/v2"


def test_images() -> None:
    plain = render()
    assert plain.pod("worker")["containers"][0]["image"] == "example/oarlock:0.1.0"
    assert plain.pod("redis")["containers"][0]["image"].startswith("redis:7")
    digest = "sha256:" + "ab" * 32
    image = {"registry": "registry.example.com:5000/", "repository": "x/y", "tag": "t", "digest": digest}
    mirrored = render(merged(NEEDED, {"image": image}))
    for role in ("ingestor", "worker"):
        assert mirrored.pod(role)["containers"][0]["image"] == f"registry.example.com:5000/x/y@{digest}"
    assert mirrored.pod("redis")["initContainers"][0]["image"] == f"registry.example.com:5000/x/y@{digest}"


def test_notes_switch_off_what_is_on_and_lead_back() -> None:
    notes = render().notes
    names = sorted(controller_names())
    assert f"--controllers=*,{','.join('-' + name for name in names)} " in notes
    assert "TO GO BACK" in notes
    assert "scale statefulset oarlock-worker --replicas=0" in notes
    assert "WARNING" not in notes
    some = render(merged(NEEDED, {"controllers": {name: name == "replicaset" for name in names}})).notes
    assert "--controllers=*,-replicaset " in some
    asleep = render(merged(NEEDED, {"worker": {"autoscaling": {"mode": "keda", "minReplicas": 0}}})).notes
    assert "paused-replicas" in asleep
    assert "WARNING: the workers may sleep" in asleep
    assert "WARNING: signing is off" in render({**NEEDED, "signing": {"enabled": False}}).notes
