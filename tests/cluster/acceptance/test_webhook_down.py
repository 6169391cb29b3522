"""An admission webhook of pods that cannot be called and must not be left out: none can be made, all else goes on.

The embedded server calls no webhooks: a fault of it answers in the same words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.acceptance.replicas import RS, bare_pod, condition_of, ready, status
from tests.cluster.acceptance.stages import Stage
from tests.e2e.e2e_kubectl import Kubectl, until

pytestmark = [pytest.mark.kubectl]

FAULTS = "/_oarlock/faults"
WORDS = "failed calling webhook"


@contextmanager
def webhook_down(kubectl: Kubectl, cluster: Stage) -> Iterator[None]:
    """For the pods of the test's namespace. In force once it is entered; it may last a moment longer."""
    name = kubectl.namespace
    if cluster.embedded:
        fault = {"action": "failWebhook", "verbs": ["create"], "resources": ["pods"]}
        begin = ("replace", "--raw", FAULTS), {"seed": 1, "faults": [fault]}
        end = ("replace", "--raw", FAULTS, "-f", "-"), json.dumps({"seed": 1, "faults": []})
    else:
        kubectl.run("label", "namespace", name, f"webhook={name}")
        begin = ("create",), webhook(name)
        end = ("delete", "validatingwebhookconfiguration", name), ""
    client = Kubectl(kubectl.kubeconfig, kubectl.home)
    client.run(*begin[0], "-f", "-", stdin=json.dumps(begin[1]))
    try:
        yield
    finally:
        client.run(*end[0], stdin=end[1])


def webhook(name: str) -> dict[str, object]:
    """Nobody listens on the port it names."""
    hook = {
        "name": "pods.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"webhook": name}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    config = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return {**config, "metadata": {"name": name}, "webhooks": [hook]}


def is_refused(kubectl: Kubectl) -> bool:
    """Whether a pod made by hand is."""
    try:
        kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(bare_pod("probe")))
    except AssertionError as error:
        return WORDS in str(error)
    return False


def test_scaled_up_and_down_while_a_webhook_is_down(kubectl: Kubectl, cluster: Stage) -> None:
    kubectl.apply(RS.make(replicas=10))
    ready(kubectl, RS, 10)
    with webhook_down(kubectl, cluster):
        until(lambda: is_refused(kubectl), 30, "the webhook is in force")
        kubectl.run("scale", "rs", "web", "--replicas=11")
        until(lambda: WORDS in condition_of(kubectl, "ReplicaFailure").get("message", ""), 5, "it is said why")
        assert condition_of(kubectl, "ReplicaFailure")["reason"] == "FailedCreate"
        assert status(kubectl, RS)["replicas"] == 10
        kubectl.run("scale", "rs", "web", "--replicas=2")
        assert len(ready(kubectl, RS, 2, limit_s=5)) == 2

        def told() -> bool:
            events = [each for each in kubectl.items("events") if each["reason"] == "FailedCreate"]
            return any(WORDS in each["message"] for each in events)

        until(told, 5, "an event tells it")
    until(lambda: not is_refused(kubectl), 30, "the webhook has gone")
    kubectl.run("scale", "rs", "web", "--replicas=4")
    assert len(ready(kubectl, RS, 4, limit_s=5)) == 4
    assert not condition_of(kubectl, "ReplicaFailure")
