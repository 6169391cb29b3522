"""The table of controllers."""

import json

import pytest

from oarlock.controllers.objects.codec import CodecError, with_template
from oarlock.controllers.objects.deflated import deflated
from oarlock.controllers.ownership.owner_table import OwnerTable
from oarlock.controllers.plan import Snapshot
from oarlock.controllers.registry import CONTROLLERS, QUEUE_OF_KIND, WATCHED
from tests.controllers.builders import NOW_MS, UID, pod, pods, rs


def test_every_controller_has_its_resource_and_queue():
    """A controller's keys are objects of a watched resource, and pods find its queue by kind."""
    for queue, controller in CONTROLLERS.items():
        resource = WATCHED[controller.resource]
        assert controller.queue == queue
        assert resource.owner_queue == queue
        assert resource.kind == controller.flavour.kind
        assert resource.api_version == controller.flavour.api_version
        assert QUEUE_OF_KIND[controller.flavour.kind] == queue


def test_a_turn_through_the_table():
    """Events in, a plan and its requests out, with nothing but the entries of the table."""
    replicasets, podres = WATCHED["replicasets"], WATCHED["pods"]
    manifest = {
        "metadata": {"name": "web", "namespace": "default", "uid": UID, "resourceVersion": "7", "generation": 1},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
        },
    }
    version, owner = replicasets.from_json(json.dumps(manifest).encode())
    name, template = replicasets.apart(owner)
    assert template not in replicasets.encode(owner)
    owner = with_template(replicasets.decode(replicasets.encode(owner)), template)
    assert name == replicasets.apart(owner)[0]
    known = OwnerTable()
    known.note(replicasets.owner_queue, owner)
    [(queue, key)] = podres.route(pod("a", owner_refs=()), False, known).wake
    assert (queue, key) in replicasets.route(owner, False, known).wake
    controller = CONTROLLERS[queue]
    plan = controller.decide(Snapshot(owner, ()), NOW_MS)
    bodies = controller.pod_bodies(owner)
    assert [json.loads(bodies.body(name))["metadata"]["name"] for name in plan.create] == list(plan.create)
    new = controller.status(owner, plan, "", NOW_MS, True)
    assert json.loads(controller.status_patch(owner, new, version))["metadata"]["resourceVersion"] == "7"
    assert controller.look_again_ms(owner, plan.claimed, new, NOW_MS, NOW_MS) is None


@pytest.mark.parametrize(
    ("owner", "apart", "fault"),
    [
        (rs(), deflated(b"{}"), "is another's"),
        (rs(), deflated(b'{"metadata":{}}'), "is another's"),
        (rs(), b"{}", "cannot be read"),
    ],
    ids=["another's", "another one's", "not deflated"],
)
def test_a_template_is_taken_only_by_the_owner_it_is_of(owner, apart, fault):
    replicasets = WATCHED["replicasets"]
    with pytest.raises(CodecError, match=f"default/web {fault}"):
        with_template(replicasets.decode(replicasets.encode(owner)), apart)
    assert with_template(owner, b"") is owner


def test_decide_of_the_table_is_that_of_the_kind():
    """The flavour is bound."""
    controller = CONTROLLERS["replicaset"]
    assert controller.name == "replicaset-controller"
    assert not controller.decide(Snapshot(rs(2), pods("RR")), NOW_MS).writes
