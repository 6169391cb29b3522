"""The JSON of a Deployment, and what a Deployment reads of its ReplicaSets."""

import json
from typing import Any

import pytest

from oarlock.controllers.deployment.model import DeploymentCondition, DeploymentStatus
from oarlock.controllers.deployment.wire import deployment_from_json
from oarlock.controllers.history.digest import template_digest
from oarlock.controllers.objects.codec import (
    CodecError,
    decode_deployment,
    decode_replicaset,
    encode,
    encode_apart,
    template_apart,
    with_template,
)
from oarlock.controllers.objects.deflated import deflated
from oarlock.controllers.objects.model import OwnerRef, label_selector
from oarlock.controllers.objects.wire import WireError, replicaset_from_json, template_facts
from tests.controllers.builders import rs
from tests.controllers.objects.test_wire import AT, AT_MS, REPLICASET, changed, dumped

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "u1",
        "resourceVersion": "42",
        "generation": 3,
        "creationTimestamp": AT,
        "annotations": {
            "deployment.kubernetes.io/revision": "2",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
        "ownerReferences": [{"apiVersion": "v1", "kind": "App", "name": "a", "uid": "a1", "controller": True}],
    },
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "web"}},
        "template": TEMPLATE,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        "minReadySeconds": 5,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "paused": True,
    },
    "status": {
        "observedGeneration": 2,
        "replicas": 5,
        "updatedReplicas": 4,
        "readyReplicas": 3,
        "availableReplicas": 2,
        "unavailableReplicas": 1,
        "terminatingReplicas": 6,
        "collisionCount": 0,
        "conditions": [
            {
                "type": "Progressing",
                "status": "True",
                "reason": "ReplicaSetUpdated",
                "message": "m",
                "lastUpdateTime": AT,
                "lastTransitionTime": AT,
            }
        ],
    },
}


def read(path: str = "", value: Any = None) -> Any:
    given = changed(DEPLOYMENT, path, value) if path else DEPLOYMENT
    return deployment_from_json(dumped(given))[1]


def test_all_that_is_read():
    """One object with every field."""
    version, deployment = deployment_from_json(dumped(DEPLOYMENT))
    assert (version, deployment.key, deployment.uid) == ("42", "default/web", "u1")
    assert (deployment.generation, deployment.replicas, deployment.created_ms) == (3, 4, AT_MS)
    assert deployment.selector == label_selector({"app": "web"})
    assert json.loads(deployment.template) == TEMPLATE
    assert deployment.template_digest == template_digest(dumped(TEMPLATE))
    assert deployment.template_labels == {"app": "web"}
    assert deployment.annotations == {"deployment.kubernetes.io/revision": "2"}
    assert (deployment.strategy, deployment.max_surge, deployment.max_unavailable) == ("RollingUpdate", "25%", 1)
    assert (deployment.min_ready_seconds, deployment.revision_history_limit) == (5, 10)
    assert (deployment.progress_deadline_seconds, deployment.paused, deployment.deleting_ms) == (600, True, 0)
    assert deployment.owner_refs == (OwnerRef("v1", "App", "a", "a1", True),)
    progressing = DeploymentCondition("Progressing", "True", "ReplicaSetUpdated", "m", AT_MS, AT_MS)
    assert deployment.status == DeploymentStatus(5, 4, 3, 2, 1, 6, 2, 0, (progressing,))


@pytest.mark.parametrize(
    ("path", "value", "field", "expected"),
    [
        pytest.param("spec.replicas", None, "replicas", 1, id="absent replicas"),
        pytest.param("spec.replicas", 0, "replicas", 0, id="no replicas"),
        pytest.param("spec.strategy", None, "strategy", "RollingUpdate", id="no strategy"),
        pytest.param("spec.strategy", {"type": "Recreate"}, "strategy", "Recreate", id="Recreate"),
        pytest.param("spec.strategy", {"type": "Recreate"}, "max_surge", None, id="no limits"),
        pytest.param("spec.revisionHistoryLimit", None, "revision_history_limit", None, id="no history limit"),
        pytest.param("spec.revisionHistoryLimit", 2**31 - 1, "revision_history_limit", None, id="an unlimited one"),
        pytest.param("spec.revisionHistoryLimit", 0, "revision_history_limit", 0, id="no history"),
        pytest.param("spec.progressDeadlineSeconds", 2**31 - 1, "progress_deadline_seconds", None, id="no deadline"),
        pytest.param("spec.progressDeadlineSeconds", None, "progress_deadline_seconds", None, id="absent deadline"),
        pytest.param("spec.paused", None, "paused", False, id="not paused"),
        pytest.param("spec.selector", None, "selector", None, id="no selector"),
        pytest.param("metadata.annotations", None, "annotations", {}, id="no annotations"),
        pytest.param("metadata.deletionTimestamp", AT, "deleting_ms", AT_MS, id="being deleted"),
        pytest.param("status", None, "status", DeploymentStatus(), id="no status"),
        pytest.param(
            "status", {"terminatingReplicas": 0}, "status", DeploymentStatus(terminating=0), id="0 is a count"
        ),
    ],
)
def test_fields(path, value, field, expected):
    """Absent, null and empty are told apart where it matters."""
    assert getattr(read(path, value), field) == expected


def test_not_a_deployment():
    """The text says which kind was expected."""
    with pytest.raises(WireError, match="not a Deployment"):
        deployment_from_json(b'{"metadata":{}}')
    with pytest.raises(WireError, match="not a pod template"):
        read("spec.template", "text")


def test_the_hash_label_counts_for_nothing():
    """A template that kubectl took from a ReplicaSet is still the Deployment's."""
    labelled = {"app": "web", "pod-template-hash": "5d"}
    deployment = read("spec.template.metadata.labels", labelled)
    assert (deployment.template_labels, deployment.template_digest) == ({"app": "web"}, read().template_digest)


def test_codec():
    """The blob has all but the template, which is kept apart."""
    deployment = read()
    assert decode_deployment(encode(deployment)) == deployment
    _, template = template_apart(deployment)
    assert with_template(decode_deployment(encode_apart(deployment)), template) == deployment
    with pytest.raises(CodecError, match="another's"):
        with_template(decode_deployment(encode_apart(deployment)), deflated(b"{}"))
    with pytest.raises(CodecError, match="not a Deployment blob"):
        decode_deployment(encode(rs()))


def test_a_replicaset():
    """Labels, annotations but the configuration applied last, and the digest of what is not the hash."""
    notes = {"deployment.kubernetes.io/revision": "2", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    given = changed(changed(REPLICASET, "metadata.annotations", notes), "metadata.labels", {"a": "b"})
    _, replicaset = replicaset_from_json(dumped(given))
    assert (replicaset.labels, replicaset.annotations) == ({"a": "b"}, {"deployment.kubernetes.io/revision": "2"})
    template = dict(given["spec"]["template"])
    assert replicaset.template_digest == template_digest(dumped(template), "pod-template-hash")
    assert decode_replicaset(encode(replicaset)) == replicaset


def test_a_strict_replicaset():
    """The annotation is read among all the others."""
    _, replicaset = replicaset_from_json(
        dumped(changed(REPLICASET, "metadata.annotations", {"oarlock.io/strict": "true"}))
    )
    assert replicaset.strict


def test_an_event_of_the_status_decodes_no_template():
    """What a template says is remembered, also between a Deployment and others with the same template."""
    template_facts.cache_clear()
    read()
    read("status.replicas", 7)
    assert (template_facts.cache_info().misses, template_facts.cache_info().hits) == (1, 1)
