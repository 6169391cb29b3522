"""Bodies of the requests about revisions."""

import json

import pytest

from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.history.bodies import (
    annotations_of,
    collision_patch,
    label_revision_patch,
    relabel_pod_patch,
    renumber_patch,
    revision_body,
)
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.history.wire import revision_from_json
from tests.controllers.builders import UID
from tests.controllers.history.history_builders import daemons, hash_for, revision, template

FLAVOUR = Flavour("apps/v1", "DaemonSet", "daemonset-controller", colocates=False, has_terminating=False)


def body(owner: DaemonSet, annotations: dict[str, str]) -> bytes:
    return revision_body(owner, FLAVOUR, annotations, "web-h", "h", 3)


def test_a_new_revision() -> None:
    assert json.loads(body(daemons("v1"), {"kubernetes.io/change-cause": "why"})) == {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "web-h",
            "namespace": "default",
            "labels": {"app": "web", HASH_LABEL: "h"},
            "annotations": {"kubernetes.io/change-cause": "why"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "web",
                    "uid": UID,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "data": {"spec": {"template": json.loads(template("v1")) | {"$patch": "replace"}}},
        "revision": 3,
    }


def test_it_is_recognised_when_it_is_read_back() -> None:
    owner = daemons("v1")
    stored = json.loads(revision_body(owner, FLAVOUR, {}, f"web-{hash_for('v1')}", hash_for("v1"), 1))
    stored["metadata"] |= {"uid": f"uid-web-{hash_for('v1')}", "resourceVersion": "7"}
    assert revision_from_json(json.dumps(stored).encode()) == ("7", revision(1, "v1"))


def test_the_hash_of_a_template_is_overruled() -> None:
    """A label of that name in the template itself must not make a revision that is never found again."""
    labelled = b'{"metadata":{"labels":{"app":"web","controller-revision-hash":"x"}}}'
    made = json.loads(body(daemons("v1", template=labelled), {}))
    assert made["metadata"]["labels"] == {"app": "web", HASH_LABEL: "h"}
    assert "annotations" not in made["metadata"]


@pytest.mark.parametrize("raw", [b"{}", b"null", b'{"metadata":null}', b'{"metadata":{"labels":null}}'])
def test_a_template_without_labels(raw: bytes) -> None:
    assert json.loads(body(daemons("v1", template=raw), {}))["metadata"]["labels"] == {HASH_LABEL: "h"}


@pytest.mark.parametrize("raw", [b"[]", b"{", b'{"metadata":[]}', b'{"metadata":{"labels":{"a":1}}}'])
def test_a_template_that_cannot_be_read(raw: bytes) -> None:
    with pytest.raises(ValueError):
        body(daemons("v1", template=raw), {})


def test_annotations() -> None:
    assert annotations_of(b'{"metadata":{"name":"web","annotations":{"a":"b"}},"spec":{}}') == {"a": "b"}
    assert annotations_of(b'{"metadata":{"annotations":null}}') == annotations_of(b"{}") == {}
    with pytest.raises(ValueError):
        annotations_of(b"<html>")


def test_patches_say_what_they_mean() -> None:
    """Of revisions UID and version, of pods the UID: what has changed since is not overwritten."""
    mine = revision(1, "v1")
    guard = {"uid": mine.uid, "resourceVersion": "7"}
    labelled = {"metadata": guard | {"labels": {HASH_LABEL: mine.name}}}
    assert json.loads(label_revision_patch(mine, "7")) == labelled
    assert json.loads(renumber_patch(mine, "7", 5)) == {"metadata": guard, "revision": 5}
    relabelled = {"metadata": {"uid": "u", "labels": {HASH_LABEL: "h"}}}
    assert json.loads(relabel_pod_patch("u", "h")) == relabelled


def test_patch_of_a_collision():
    """Nothing but the count, on the owner as it was read."""
    assert json.loads(collision_patch(UID, 3, "77")) == {
        "metadata": {"uid": UID, "resourceVersion": "77"},
        "status": {"collisionCount": 3},
    }
