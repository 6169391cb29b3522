"""Bodies of new pods."""

import json

import pytest

from oarlock.controllers.flavour import REPLICASET
from oarlock.controllers.objects.model import OwnerRef
from oarlock.controllers.objects.wire import pod_from_json, replicaset_from_json
from oarlock.controllers.pods.pod_template import PodBodies, TemplateError, check_controller_ref, pod_bodies
from tests import ROOT
from tests.controllers.builders import OURS, UID, rs, with_fields
from tests.controllers.ownership.test_claim import REPLICATIONCONTROLLER

FULL_TEMPLATE = {
    "metadata": {
        "name": "ignored",
        "namespace": "ignored",
        "creationTimestamp": None,
        "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x"}],
        "labels": {"app": "web"},
        "annotations": {"a": "1"},
        "finalizers": ["example.com/f"],
    },
    "spec": {"nodeName": "n7", "schedulerName": "mine", "containers": [{"name": "ü", "image": "i"}]},
}


def body_of(template, flavour=REPLICASET, name="web-bbbbb"):
    owner = rs(template=json.dumps(template).encode())
    return json.loads(pod_bodies(owner, flavour=flavour).body(name))


def test_body():
    """Labels, annotations, finalizers and the spec of the template; everything else of its metadata is
    left out.
    """
    assert body_of(FULL_TEMPLATE) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-bbbbb",
            "generateName": "web-",
            "namespace": "default",
            "labels": {"app": "web"},
            "annotations": {"a": "1"},
            "finalizers": ["example.com/f"],
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": UID,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": FULL_TEMPLATE["spec"],
    }


def test_body_has_labels_and_generate_name():
    """11.4.3: the POST carries the labels and generateName `<name>-`, and the chosen name beside it."""
    meta = body_of({"metadata": {"labels": {"a": "b"}}, "spec": {}})["metadata"]
    assert (meta["labels"], meta["generateName"]) == ({"a": "b"}, "web-")
    assert "annotations" not in meta
    assert "finalizers" not in meta


def test_body_of_another_flavour():
    """The reference names the kind of the owner."""
    [ref] = body_of(FULL_TEMPLATE, REPLICATIONCONTROLLER)["metadata"]["ownerReferences"]
    assert (ref["apiVersion"], ref["kind"]) == ("v1", "ReplicationController")


def test_spec_is_copied_byte_for_byte():
    """Whatever the template says, known here or not, reaches the pod unchanged."""
    spec = b'{ "containers" : [{"name":"c","x":1.10,"y":"\\u00fc"}], "future":  {"a":null} }'
    template = b'{"spec":' + spec + b',"metadata":{"labels":{"a":"b"}}}'
    assert spec in pod_bodies(rs(template=template), flavour=REPLICASET).body("n")


@pytest.mark.parametrize(
    "template",
    [{"spec": {}}, {"metadata": None, "spec": {}}, {"metadata": {"labels": {}}}, {"metadata": {"labels": None}}, {}],
    ids=["no metadata", "null metadata", "empty labels", "null labels", "empty template"],
)
def test_template_without_labels(template):
    """Refused before any request, with upstream's words."""
    with pytest.raises(TemplateError, match=r"^unable to create pods, no labels$"):
        body_of(template)


@pytest.mark.parametrize("template", [b"null", b"", b"[]", b'{"metadata":{"labels":{"a":1}}}'])
def test_template_that_cannot_be_read(template):
    """One clear error; it becomes the text of ReplicaFailure."""
    with pytest.raises(TemplateError, match=r"^unable to create pods, template: "):
        pod_bodies(rs(template=template), flavour=REPLICASET)


@pytest.mark.parametrize(
    ("ref", "part"),
    [
        pytest.param(None, "missing", id="none"),
        pytest.param(with_fields(OURS, api_version=""), "no apiVersion", id="no apiVersion"),
        pytest.param(with_fields(OURS, kind=""), "no kind", id="no kind"),
        pytest.param(with_fields(OURS, controller=False), "not that of a controller", id="not controlling"),
        pytest.param(with_fields(OURS, block_owner_deletion=False), "does not block", id="not blocking"),
    ],
)
def test_reference_is_checked(ref, part):
    """An incomplete reference is an error before any request."""
    with pytest.raises(TemplateError, match=part):
        check_controller_ref(ref)


def test_bodies_check_their_reference():
    """No body comes out with a reference that would leave pods behind."""
    with pytest.raises(TemplateError, match="no kind"):
        PodBodies("default", "web-", rs().template, OwnerRef("v1", "", "web", UID, True, True))


def test_created_pod_is_recognised_as_ours():
    """What is sent comes back as an active pod under the owner's control, fully labelled."""
    sent = json.loads(pod_bodies(rs(), flavour=REPLICASET).body("web-bbbbb"))
    sent["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    _, got = pod_from_json(json.dumps(sent).encode())
    assert got.owner_refs == (OURS,)
    assert got.labels == rs().template_labels


MANIFESTS = sorted((ROOT.parent / "shared" / "manifests").glob("rs-*.yaml"))


@pytest.mark.skipif(not MANIFESTS, reason="no manifests beside the repository")
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_real_manifests(path):
    """ReplicaSets people have written: their pods get the whole spec and match their own selector."""
    import yaml

    found = [d for d in yaml.safe_load_all(path.read_text()) if d and d["kind"] == "ReplicaSet"]
    assert found
    for manifest in found:
        manifest["metadata"] |= {"namespace": "default", "uid": "u", "resourceVersion": "1"}
        _, owner = replicaset_from_json(json.dumps(manifest).encode())
        body = json.loads(pod_bodies(owner, flavour=REPLICASET).body("x"))
        assert body["spec"] == manifest["spec"]["template"]["spec"]
        if owner.selector is not None:
            assert owner.selector.matches(body["metadata"]["labels"])
