"""DaemonSets and their revisions."""

import json

import pytest

from oarlock.controllers.daemonset.model import DaemonSetStatus
from oarlock.controllers.daemonset.wire import daemonset_from_json
from oarlock.controllers.history.digest import revision_data, template_digest
from oarlock.controllers.history.wire import revision_from_json
from oarlock.controllers.objects.codec import decode_daemonset, decode_revision, encode
from oarlock.controllers.objects.model import LabelSelector, OwnerRef
from oarlock.controllers.objects.wire import WireError
from oarlock.controllers.scheduling.model import Placement, Toleration
from tests.controllers.objects.test_wire import AT, AT_MS, META, changed, dumped

TEMPLATE = {
    "metadata": {"labels": {"app": "agent"}},
    "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "hostNetwork": True,
        "nodeSelector": {"os": "linux"},
        "tolerations": [{"operator": "Exists"}],
    },
}
GENERATION = "deprecated.daemonset.template.generation"
DAEMONSET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": META | {"name": "agent", "generation": 3, "creationTimestamp": AT, "annotations": {GENERATION: "2"}},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": TEMPLATE,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}},
        "minReadySeconds": 5,
        "revisionHistoryLimit": 4,
    },
    "status": {
        "desiredNumberScheduled": 1,
        "currentNumberScheduled": 2,
        "numberMisscheduled": 3,
        "numberReady": 4,
        "updatedNumberScheduled": 5,
        "numberAvailable": 6,
        "numberUnavailable": 7,
        "observedGeneration": 8,
        "collisionCount": 9,
    },
}


def test_daemonset():
    """Every field that is read; the template is kept as it came."""
    version, owner = daemonset_from_json(dumped(DAEMONSET))
    assert version == "42"
    assert (owner.key, owner.uid, owner.generation, owner.template_generation) == ("default/agent", "u1", 3, 2)
    assert owner.selector == LabelSelector({"app": "agent"})
    assert json.loads(owner.template) == TEMPLATE
    assert owner.template_digest == template_digest(dumped(TEMPLATE))
    assert owner.placement == Placement("", {"os": "linux"}, None, (Toleration("", "Exists"),), True)
    assert (owner.strategy, owner.max_unavailable, owner.max_surge) == ("RollingUpdate", "10%", 0)
    assert (owner.min_ready_seconds, owner.revision_history_limit) == (5, 4)
    assert (owner.deleting_ms, owner.created_ms, owner.owner_refs) == (0, AT_MS, ())
    assert owner.status == DaemonSetStatus(
        desired=1, current=2, misscheduled=3, ready=4, updated=5, available=6, unavailable=7, observed_generation=8,
        collision_count=9,
    )  # fmt: skip
    assert decode_daemonset(encode(owner)) == owner


@pytest.mark.parametrize(
    ("path", "value", "field", "expected"),
    [
        pytest.param("spec.selector", None, "selector", None, id="no selector stays none"),
        pytest.param("spec.selector", {}, "selector", LabelSelector({}), id="an empty one stays empty"),
        pytest.param("spec.template", None, "template", b"{}", id="no template is an empty one"),
        pytest.param("spec.template", None, "placement", Placement(), id="no template says nothing about nodes"),
        pytest.param("spec.updateStrategy", None, "strategy", "RollingUpdate", id="no strategy"),
        pytest.param("spec.updateStrategy", {}, "strategy", "RollingUpdate", id="an empty strategy"),
        pytest.param("spec.updateStrategy", {"type": "OnDelete"}, "strategy", "OnDelete", id="OnDelete"),
        pytest.param("spec.updateStrategy", {"type": "OnDelete"}, "max_unavailable", None, id="OnDelete has no limits"),
        pytest.param("spec.updateStrategy.rollingUpdate", None, "max_unavailable", None, id="no limits"),
        pytest.param("spec.updateStrategy.rollingUpdate", {}, "max_surge", None, id="empty limits"),
        pytest.param("spec.updateStrategy.rollingUpdate.maxUnavailable", 0, "max_unavailable", 0, id="0 is a limit"),
        pytest.param("spec.updateStrategy.rollingUpdate.maxSurge", "25%", "max_surge", "25%", id="surge in percent"),
        pytest.param("spec.updateStrategy.rollingUpdate.maxSurge", "two", "max_surge", "two", id="kept as given"),
        pytest.param("spec.minReadySeconds", None, "min_ready_seconds", 0, id="no minReadySeconds"),
        pytest.param("spec.revisionHistoryLimit", None, "revision_history_limit", 10, id="the limit defaults to 10"),
        pytest.param("spec.revisionHistoryLimit", 0, "revision_history_limit", 0, id="a limit of 0 stays 0"),
        pytest.param("status", None, "status", DaemonSetStatus(), id="no status yet"),
        pytest.param(
            "status", {"collisionCount": 0}, "status", DaemonSetStatus(collision_count=0), id="no collision is a count"
        ),
        pytest.param("metadata.annotations", None, "template_generation", None, id="null annotations"),
        pytest.param("metadata.annotations", {"a": "b"}, "template_generation", None, id="no generation"),
        pytest.param("metadata.annotations", {GENERATION: ""}, "template_generation", None, id="empty generation"),
        pytest.param("metadata.annotations", {GENERATION: "x"}, "template_generation", None, id="no number"),
        pytest.param("metadata.annotations", {GENERATION: "-1"}, "template_generation", -1, id="any number"),
        pytest.param("metadata.annotations", {GENERATION: "0"}, "template_generation", 0, id="0 is a generation"),
        pytest.param("metadata.deletionTimestamp", AT, "deleting_ms", AT_MS, id="being deleted"),
        pytest.param(
            "metadata.ownerReferences",
            [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x1", "controller": True}],
            "owner_refs",
            (OwnerRef("v1", "X", "x", "x1", True, False),),
            id="owned",
        ),
    ],
)
def test_daemonset_fields(path, value, field, expected):
    """Absent, null and empty are told apart where it matters."""
    _, owner = daemonset_from_json(dumped(changed(DAEMONSET, path, value)))
    assert getattr(owner, field) == expected


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("spec.template", [], id="a list for a template"),
        pytest.param("spec.template.spec.nodeSelector", "linux", id="text for a nodeSelector"),
        pytest.param("spec.template.spec.tolerations", {}, id="a map for tolerations"),
        pytest.param("spec.updateStrategy.rollingUpdate.maxSurge", 0.5, id="half a pod"),
        pytest.param("spec", None, id="null spec"),
    ],
)
def test_no_daemonset(path, value):
    """One error class, whichever part cannot be read."""
    with pytest.raises(WireError, match=r"^not a (DaemonSet|pod template): "):
        daemonset_from_json(dumped(changed(DAEMONSET, path, value)))


REVISION = {
    "apiVersion": "apps/v1",
    "kind": "ControllerRevision",
    "metadata": META
    | {
        "name": "agent-5f8b",
        "creationTimestamp": AT,
        "labels": {"app": "agent", "controller-revision-hash": "5f8b"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d1", "controller": True}
        ],
    },
    "data": json.loads(revision_data(dumped(TEMPLATE))),
    "revision": 7,
}


def test_revision():
    """Every field that is read; its digest is that of the owner's template."""
    version, one = revision_from_json(dumped(REVISION))
    assert version == "42"
    assert (one.key, one.uid, one.hash, one.revision) == ("default/agent-5f8b", "u1", "5f8b", 7)
    assert one.labels == {"app": "agent", "controller-revision-hash": "5f8b"}
    assert one.owner_refs == (OwnerRef("apps/v1", "DaemonSet", "agent", "d1", True, False),)
    assert (one.created_ms, one.deleting_ms) == (AT_MS, 0)
    assert one.digest == daemonset_from_json(dumped(DAEMONSET))[1].template_digest
    assert decode_revision(encode(one)) == one


@pytest.mark.parametrize(
    ("path", "value", "field", "expected"),
    [
        pytest.param("metadata.labels", None, "hash", "", id="no labels, no hash"),
        pytest.param("metadata.ownerReferences", None, "owner_refs", (), id="an orphan"),
        pytest.param("metadata.deletionTimestamp", AT, "deleting_ms", AT_MS, id="being deleted"),
        pytest.param("revision", None, "revision", 0, id="no number"),
    ],
)
def test_revision_fields(path, value, field, expected):
    """As in Go, null is absent."""
    _, one = revision_from_json(dumped(changed(REVISION, path, value)))
    assert getattr(one, field) == expected


@pytest.mark.parametrize("data", [None, {}, [], "x", {"spec": {"template": None}}, {"raw": "eA=="}])
def test_revision_of_something_else(data):
    """What another controller keeps in a revision can be read, and is no template of a DaemonSet."""
    _, one = revision_from_json(dumped(changed(REVISION, "data", data)))
    _, none = revision_from_json(dumped({key: value for key, value in REVISION.items() if key != "data"}))
    for digest in (one.digest, none.digest):
        assert digest not in ("", template_digest(dumped(TEMPLATE)), template_digest(b"{}"))


def test_unread_changes_leave_the_projection_equal():
    """Annotations, managed fields and conditions, none of which decides anything."""
    _, before = daemonset_from_json(dumped(DAEMONSET))
    other = changed(changed(DAEMONSET, "metadata.managedFields", []), "status.conditions", [])
    other = changed(other, "metadata.annotations", {GENERATION: "2", "more": "x"})
    assert encode(daemonset_from_json(dumped(other))[1]) == encode(before)
