"""Bodies of daemon pods."""

import json

import pytest

from oarlock.controllers.daemonset.bodies import DaemonPodBodies
from oarlock.controllers.daemonset.wire import daemonset_from_json
from oarlock.controllers.flavour import DAEMONSET
from oarlock.controllers.objects.model import controller_of
from oarlock.controllers.objects.wire import pod_from_json
from oarlock.controllers.pods.pod_template import TemplateError
from oarlock.controllers.scheduling.wire import placement_from_template
from tests import ROOT
from tests.controllers.daemonset.daemon_builders import DS_OURS, DS_UID, NEW, ds

ALWAYS = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
]
ADDED = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in ALWAYS]
NETWORK = {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"}
PINNED = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    }
}


def bodies_of(template, nodes, **fields):
    raw = template if isinstance(template, bytes) else json.dumps(template).encode()
    return DaemonPodBodies(ds(template=raw, placement=placement_from_template(raw), **fields), NEW, nodes, DAEMONSET)


def body_of(spec, **fields):
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": spec}
    return json.loads(bodies_of(template, {"p": "n1"}, **fields).body("p"))


def test_body():
    """26.1.14, 26.3.2: what pods made from a template have, and one affinity term with one field and no node name."""
    template = {
        "metadata": {
            "labels": {"app": "agent"},
            "annotations": {"a": "1"},
            "finalizers": ["example.com/f"],
            "name": "x",
        },
        "spec": {"containers": [{"name": "ü", "image": "i"}], "nodeSelector": {"a": "b"}},
    }
    assert json.loads(bodies_of(template, {"p": "n1"}).body("p")) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "generateName": "agent-",
            "namespace": "default",
            "labels": {"app": "agent", "controller-revision-hash": NEW},
            "annotations": {"a": "1"},
            "finalizers": ["example.com/f"],
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "agent",
                    "uid": DS_UID,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": template["spec"] | {"tolerations": ADDED, "affinity": {"nodeAffinity": PINNED}},
    }


def test_bodies_differ_in_name_and_node():
    """And in nothing else."""
    nodes = {"p1": "n1", "p2": 'n"2"'}  # a node cannot be called that, and it would not matter
    one, two = (json.loads(bodies_of(ds().template, nodes).body(name)) for name in nodes)
    assert one["metadata"].pop("name") == "p1"
    assert two["metadata"].pop("name") == "p2"
    for body, node in ((one, "n1"), (two, 'n"2"')):
        [term] = body["spec"]["affinity"]["nodeAffinity"].popitem()[1]["nodeSelectorTerms"]
        assert term["matchFields"][0]["values"] == [node]
    assert one == two


@pytest.mark.parametrize(
    ("generation", "label"), [(None, None), (0, "0"), (12, "12")], ids=["26.3.2 without", "zero", "26.3.2 with"]
)
def test_template_generation(generation, label):
    """The label is there when the annotation is."""
    labels = body_of({}, template_generation=generation)["metadata"]["labels"]
    assert labels.get("pod-template-generation") == label


WISH = [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]
THEIR_TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * 2}
REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(None, {"nodeAffinity": PINNED}, id="26.3.3 none"),
        pytest.param({}, {"nodeAffinity": PINNED}, id="26.3.3 empty"),
        pytest.param({"nodeAffinity": None}, {"nodeAffinity": PINNED}, id="no node affinity"),
        pytest.param({"nodeAffinity": {REQUIRED: None}}, {"nodeAffinity": PINNED}, id="26.3.3 nothing required"),
        pytest.param({"nodeAffinity": {REQUIRED: {}}}, {"nodeAffinity": PINNED}, id="26.3.3 required, no terms"),
        pytest.param({"nodeAffinity": {REQUIRED: THEIR_TERMS}}, {"nodeAffinity": PINNED}, id="26.3.3 terms replaced"),
        pytest.param(
            {"nodeAffinity": {PREFERRED: WISH}}, {"nodeAffinity": {PREFERRED: WISH} | PINNED}, id="26.3.3 wishes stay"
        ),
        pytest.param(
            {"nodeAffinity": {REQUIRED: THEIR_TERMS, PREFERRED: WISH}, "podAntiAffinity": {"x": [1.10]}},
            {"nodeAffinity": {PREFERRED: WISH} | PINNED, "podAntiAffinity": {"x": [1.10]}},
            id="26.3.3 everything else stays",
        ),
    ],
)
def test_affinity(affinity, expected):
    """The required node affinity is replaced, the rest is kept."""
    assert body_of({"affinity": affinity})["spec"]["affinity"] == expected


OWN = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}
FOR_A_WHILE = ADDED[1] | {"tolerationSeconds": 300}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, ADDED, id="26.3.2 none of its own"),
        pytest.param({"tolerations": None}, ADDED, id="null"),
        pytest.param({"hostNetwork": True}, [*ADDED, NETWORK], id="on the host's network"),
        pytest.param({"tolerations": [OWN]}, [OWN, *ADDED], id="its own come first"),
        pytest.param(
            {"tolerations": [OWN | {"effect": "NoExecute", "tolerationSeconds": 5}]},
            [OWN | {"effect": "NoExecute", "tolerationSeconds": 5}, *ADDED],
            id="seconds of its own stay",
        ),
        pytest.param(
            {"tolerations": [FOR_A_WHILE, OWN]},
            [ADDED[1], OWN, ADDED[0], *ADDED[2:]],
            id="the same for a while: for ever",
        ),
    ],
)
def test_tolerations(spec, expected):
    """Those that every daemon has are merged in."""
    assert body_of(spec)["spec"]["tolerations"] == expected


def test_the_rest_of_the_spec_is_left_as_spelled():
    """Whatever the template says, known here or not, reaches the pod unchanged, its node name too."""
    kept = (b'"containers":[{"name":"c","x":1.10,"y":"\\u00fc"}]', b'"future":{"a":null}', b'"nodeName":"n7"')
    template = b'{"metadata":{"labels":{"a":"b"},"future":1},"spec":{' + b",".join(kept) + b"}}"
    body = bodies_of(template, {"p": "n1"}).body("p")
    assert all(part in body for part in kept)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param({"spec": {}}, "no labels", id="no metadata"),
        pytest.param({"metadata": {"labels": None}, "spec": {}}, "no labels", id="null labels"),
        pytest.param({"metadata": {"labels": {}}, "spec": {}}, "no labels", id="empty labels"),
        pytest.param(b'{"metadata":{"labels":{"a":1}}}', "template: ", id="a label that is none"),
        pytest.param(b'{"metadata":{"labels":{"a":"b"}},"spec":{"affinity":1}}', "template: ", id="affinity"),
        pytest.param(b'{"metadata":{"labels":{"a":"b"}},"spec":[]}', "template: ", id="spec"),
        pytest.param(b"null", "template: ", id="null"),
        pytest.param(b"", "template: ", id="nothing"),
    ],
)
def test_template_that_makes_no_pods(template, text):
    """As for other owners: one clear error before any request."""
    raw = template if isinstance(template, bytes) else json.dumps(template).encode()
    with pytest.raises(TemplateError, match=rf"^unable to create pods, {text}"):
        DaemonPodBodies(ds(template=raw), NEW, {}, DAEMONSET)


def test_created_pod_is_recognised():
    """What is sent comes back as a pod of ours that is bound for its node."""
    sent = json.loads(bodies_of(ds().template, {"p": "n1"}).body("p"))
    sent["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    _, pod = pod_from_json(json.dumps(sent).encode())
    assert (controller_of(pod), pod.target_node, pod.node_name) == (DS_OURS, "n1", "")


MANIFESTS = sorted((ROOT.parent / "shared" / "manifests").glob("ds-*.yaml"))


@pytest.mark.skipif(not MANIFESTS, reason="no manifests beside the repository")
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_real_manifests(path):
    """DaemonSets people have written: their pods keep the spec but for what is merged, and match their selector."""
    import yaml

    found = [d for d in yaml.safe_load_all(path.read_text()) if d and d["kind"] == "DaemonSet"]
    assert found
    for manifest in found:
        manifest["metadata"] |= {"uid": "u", "resourceVersion": "1"}
        manifest["metadata"].setdefault("namespace", "default")
        _, owner = daemonset_from_json(json.dumps(manifest).encode())
        body = json.loads(DaemonPodBodies(owner, NEW, {"x": "n1"}).body("x"))
        theirs = manifest["spec"]["template"]["spec"]
        ours = body["spec"]
        for key in (theirs.keys() | ours.keys()) - {"tolerations", "affinity"}:
            assert ours[key] == theirs[key]
        assert ours["affinity"]["nodeAffinity"][REQUIRED] == PINNED[REQUIRED]
        assert all(each in ours["tolerations"] for each in theirs.get("tolerations") or [])
        assert all(each in ours["tolerations"] for each in ADDED)
        assert owner.selector is not None
        assert owner.selector.matches(body["metadata"]["labels"])
