"""Whose an object is, and the requests that change it."""

import json

import pytest

from oarlock.controllers.flavour import REPLICASET, Flavour
from oarlock.controllers.objects.model import InvalidSelector, Requirement, label_selector
from oarlock.controllers.ownership.claim import (
    Done,
    adopt_patch,
    adopted,
    cannot_adopt,
    claim,
    gate_error,
    release_patch,
    released,
)
from tests.controllers.builders import NOW_MS, OTHER_UID, OURS, THEIRS, UID, pod, rs, with_fields

ORPHAN = {"owner_refs": ()}
FOREIGN = {"owner_refs": (THEIRS,)}
UNSELECTED = {"labels": {"app": "else"}}
DELETING = {"deleting_ms": NOW_MS}
REPLICATIONCONTROLLER = Flavour(
    api_version="v1",
    kind="ReplicationController",
    component="replication-controller",
    colocates=False,
    has_terminating=False,
)


@pytest.mark.parametrize(
    ("owner", "fields", "outcome"),
    [
        pytest.param({}, FOREIGN, "", id="11.4.15 another's: ignored"),
        pytest.param({}, FOREIGN | UNSELECTED, "", id="another's and not selected: ignored"),
        pytest.param({}, {}, "kept", id="ours"),
        pytest.param(DELETING, {}, "kept", id="11.4.15 ours while the owner is being deleted"),
        pytest.param({}, DELETING, "kept", id="ours, being deleted"),
        pytest.param(DELETING, UNSELECTED, "", id="ours, not selected, while the owner is being deleted"),
        pytest.param({}, UNSELECTED, "release", id="11.4.15 ours, not selected: released"),
        pytest.param({}, UNSELECTED | DELETING, "release", id="ours, not selected, being deleted"),
        pytest.param({}, ORPHAN | UNSELECTED, "", id="an orphan that is not selected"),
        pytest.param(DELETING, ORPHAN, "", id="11.4.15 orphan while the owner is being deleted"),
        pytest.param({}, ORPHAN | DELETING, "", id="11.4.15 an orphan being deleted is not adopted"),
        pytest.param({}, ORPHAN | {"namespace": "other"}, "", id="11.4.15 an orphan of another namespace"),
        pytest.param({}, {"namespace": "other"}, "", id="of another namespace that names us: nobody's"),
        pytest.param({}, UNSELECTED | {"namespace": "other"}, "", id="nor is it released"),
        pytest.param({"namespace": ""}, ORPHAN, "adopt", id="11.4.15 a cluster-scoped owner claims anywhere"),
        pytest.param({}, ORPHAN, "adopt", id="11.4.15 an orphan that is selected: adopted"),
        pytest.param(
            {}, {"owner_refs": (with_fields(OURS, controller=False),)}, "adopt", id="our reference, not controlling"
        ),
        pytest.param(
            {},
            {"owner_refs": (with_fields(OURS, controller=False), THEIRS)},
            "",
            id="our plain reference beside another's controlling one",
        ),
    ],
)
def test_claim(owner, fields, outcome):
    """The decision for one object."""
    candidate = pod("a", **fields)
    claims = claim(rs(**owner), [candidate])
    found = {part: getattr(claims, part) for part in ("kept", "adopt", "release")}
    assert found == {part: [candidate] if part == outcome else [] for part in found}
    assert claims.claimed == claims.kept + claims.adopt


def test_claims_keep_the_order_given():
    """11.4.7: what is claimed, kept and adopted mixed, comes in the order of the candidates."""
    mixed = [pod("a"), pod("b", **ORPHAN), pod("c", **FOREIGN), pod("d", **UNSELECTED), pod("e")]
    claims = claim(rs(), mixed)
    assert claims.claimed == [mixed[0], mixed[1], mixed[4]]
    assert claims.release == [mixed[3]]


def test_invalid_selector_is_an_error():
    """An invalid selector never silently matches nothing."""
    with pytest.raises(InvalidSelector, match="not an operator"):
        claim(rs(selector=label_selector(None, (Requirement("app", "Like", ("w",)),))), [pod("a")])


@pytest.mark.parametrize(
    ("live_uid", "live_deleting_ms", "error"),
    [
        pytest.param(UID, 0, "", id="the same owner, alive"),
        pytest.param(
            OTHER_UID,
            0,
            f"original ReplicaSet default/web is gone: got uid {OTHER_UID}, wanted {UID}",
            id="recreated under the same name",
        ),
        pytest.param(
            UID, NOW_MS, "default/web has just been deleted at 2025-06-15T15:06:40Z", id="11.2.22 deleted meanwhile"
        ),
    ],
)
def test_adoption_gate(live_uid, live_deleting_ms, error):
    """The live owner must be the same and alive."""
    assert gate_error(rs(), "ReplicaSet", live_uid, live_deleting_ms) == error


def test_adoption_refused_by_the_gate_reads_as_upstream():
    """The wording of the aggregated error."""
    assert cannot_adopt("Pod", pod("a"), "why") == "can't adopt Pod default/a (uid-a): why"


@pytest.mark.parametrize(
    ("flavour", "ref"),
    [
        pytest.param(REPLICASET, {"apiVersion": "apps/v1", "kind": "ReplicaSet"}, id="ReplicaSet"),
        pytest.param(REPLICATIONCONTROLLER, {"apiVersion": "v1", "kind": "ReplicationController"}, id="RC"),
    ],
)
def test_adopt_patch(flavour, ref):
    """One controlling reference, and the UID as precondition; nothing else, no blanks."""
    patch = adopt_patch(rs(), flavour, "pod-uid")
    ref |= {"name": "web", "uid": UID, "controller": True, "blockOwnerDeletion": True}
    assert json.loads(patch) == {"metadata": {"ownerReferences": [ref], "uid": "pod-uid"}}
    assert b" " not in patch


def test_adopt_patch_with_finalizers():
    """11.4.15: controllers that manage finalizers put them on with the reference."""
    patch = json.loads(adopt_patch(rs(), REPLICASET, "pod-uid", ("example.com/f",)))
    assert patch["metadata"]["finalizers"] == ["example.com/f"]


@pytest.mark.parametrize(
    ("uids", "finalizers", "expected"),
    [
        pytest.param(
            ("o1",),
            (),
            b'{"metadata":{"uid":"pod-uid","ownerReferences":[{"$patch":"delete","uid":"o1"}]}}',
            id="11.4.16 one owner",
        ),
        pytest.param(
            ('o"1',),
            (),
            b'{"metadata":{"uid":"pod-uid","ownerReferences":[{"$patch":"delete","uid":"o\\"1"}]}}',
            id="11.4.16 escaping",
        ),
        pytest.param(
            ("o1", "o2"),
            (),
            b'{"metadata":{"uid":"pod-uid","ownerReferences":'
            b'[{"$patch":"delete","uid":"o1"},{"$patch":"delete","uid":"o2"}]}}',
            id="11.4.16 several owners",
        ),
        pytest.param(
            ("o1",),
            ("example.com/f",),
            b'{"metadata":{"uid":"pod-uid","ownerReferences":[{"$patch":"delete","uid":"o1"}],'
            b'"$deleteFromPrimitiveList/finalizers":["example.com/f"]}}',
            id="11.4.16 with a finalizer",
        ),
    ],
)
def test_release_patch(uids, finalizers, expected):
    """The bytes as upstream sends them."""
    assert release_patch("pod-uid", uids, finalizers) == expected


@pytest.mark.parametrize(
    ("code", "adoption", "release"),
    [
        pytest.param(200, Done.YES, Done.YES, id="done"),
        pytest.param(404, Done.GONE, Done.GONE, id="11.4.4 gone: no error either way"),
        pytest.param(422, Done.ERROR, Done.GONE, id="invalid: another adopted it, or it is no longer ours"),
        pytest.param(409, Done.ERROR, Done.ERROR, id="recreated under the same name"),
        pytest.param(403, Done.ERROR, Done.ERROR, id="forbidden"),
        pytest.param(500, Done.ERROR, Done.ERROR, id="11.2.20 server error ends the turn"),
        pytest.param(0, Done.ERROR, Done.ERROR, id="no answer"),
    ],
)
def test_answers(code, adoption, release):
    """What the answers mean."""
    assert (adopted(code), released(code)) == (adoption, release)
