"""From events to index entries and keys."""

import pytest

from oarlock.controllers.objects.model import OwnerRef, ReplicaSetStatus, Requirement, label_selector
from oarlock.controllers.ownership.owner_table import OwnerTable
from oarlock.controllers.pods.classes import class_of
from oarlock.controllers.pods.slots import base_of
from oarlock.controllers.routing import Routes, route_owner, route_pod, route_replicaset, route_revision
from tests.controllers.builders import NOW_MS, OURS, THEIRS, UID, pod, rs, with_fields
from tests.controllers.history.history_builders import THEIR_DAEMONS, daemons, revision

QUEUES = {"ReplicaSet": "replicaset", "Other": "other"}
DEPLOYMENT = OwnerRef("apps/v1", "Deployment", "d", "dep-uid", True, True)


def table(*owners, queue="replicaset"):
    known = OwnerTable()
    for owner in owners:
        known.note(queue, owner)
    return known


WEB = rs(name="web", uid="1")
TWIN = rs(name="twin", uid="2")
API = rs(name="api", uid="3", selector=label_selector({"app": "api"}))
ABROAD = rs(name="web", namespace="other", uid="4")
KNOWN = table(WEB, API, ABROAD)
ORPHAN = {"owner_refs": ()}
UNDER_LABELS = ("orphan=default", "orphan=default/app=web")
LOOK = ("?default/app=web", "+default/~web-")


def wake_of(one, known=KNOWN, gone=False):
    return route_pod(one, gone, QUEUES, known).wake


@pytest.mark.parametrize(
    ("one", "gone", "wake"),
    [
        pytest.param(pod("a"), False, ["default/web"], id="an owned pod wakes its owner"),
        pytest.param(pod("a", phase="Failed"), False, ["default/web"], id="11.2.9 also when it has failed"),
        pytest.param(pod("a", deleting_ms=NOW_MS), False, ["default/web"], id="11.2.18 also with a deletion timestamp"),
        pytest.param(pod("a"), True, ["default/web"], id="11.2.2 also when it has gone, however that was learnt"),
        pytest.param(
            pod("a", labels={"app": "api"}), False, ["default/web"], id="11.2.10 labels do not matter while owned"
        ),
        pytest.param(
            pod("a", owner_refs=(with_fields(OURS, api_version="v1"),)),
            False,
            ["default/web"],
            id="11.2.10 the group is not compared",
        ),
        pytest.param(pod("a", **ORPHAN), False, ["default/web"], id="11.2.10 reference removed: who selects it"),
        pytest.param(
            pod("a", **ORPHAN, labels={"app": "api"}),
            False,
            ["default/api"],
            id="11.2.10 reference removed, selected by another",
        ),
        pytest.param(pod("a", **ORPHAN, labels={}), False, [], id="11.2.6 an orphan without labels"),
        pytest.param(pod("a", **ORPHAN, namespace="third"), False, [], id="11.2.6 an orphan in another namespace"),
        pytest.param(
            pod("a", **ORPHAN, namespace="other"), False, ["other/web"], id="11.2.6 the owner of that namespace"
        ),
        pytest.param(pod("a", **ORPHAN, deleting_ms=NOW_MS), False, [], id="an orphan being deleted"),
        pytest.param(pod("a", **ORPHAN), True, [], id="an orphan that has gone: nobody counts it"),
        pytest.param(pod("a", owner_refs=(with_fields(OURS, kind="Job"),)), False, [], id="a kind not served here"),
        pytest.param(pod("a", owner_refs=(with_fields(OURS, kind="Job"),)), True, [], id="the same, gone"),
        pytest.param(
            pod("a", owner_refs=(with_fields(OURS, controller=False),)),
            False,
            ["default/web"],
            id="a reference that does not control: an orphan",
        ),
    ],
)
def test_pod_wakes(one, gone, wake):
    """Section 2: whom an event about a pod wakes."""
    assert [key for queue, key in wake_of(one, gone=gone) if queue == "replicaset"] == wake


def test_owned_pod_wakes_one_of_nine():
    """11.2.17: nine owners with the same labels, and only the pod's own wakes."""
    nine = table(*(rs(name=f"web{i}", uid=str(i)) for i in range(9)))
    ref = with_fields(OURS, name="web4", uid="4")
    assert wake_of(pod("a", owner_refs=(ref,)), nine) == (("replicaset", "default/web4"),)


def test_orphan_wakes_all_that_select_it_and_warns():
    """Several owners selecting one pod is a user error; all are woken, the first to adopt wins."""
    routes = route_pod(pod("a", **ORPHAN), False, QUEUES, table(WEB, TWIN))
    assert {key for _, key in routes.wake} == {"default/web", "default/twin"}
    assert routes.warning == "default/a is selected by several owners in replicaset: default/twin, default/web"
    assert route_pod(pod("a", **ORPHAN), False, QUEUES, KNOWN).warning == ""


def test_orphan_wakes_owners_of_every_kind():
    """Each controller has a queue of its own, and keys of different kinds may be equal."""
    known = table(WEB)
    known.note("other", WEB)
    assert wake_of(pod("a", **ORPHAN), known) == (("replicaset", "default/web"), ("other", "default/web"))


@pytest.mark.parametrize(
    ("one", "index"),
    [
        pytest.param(pod("a"), (f"owner={UID}", "node=n1"), id="11.4.14 owned"),
        pytest.param(pod("a", owner_refs=(THEIRS,)), (f"owner={THEIRS.uid}", "node=n1"), id="11.4.14 another's"),
        pytest.param(
            pod("a", owner_refs=(with_fields(OURS, kind="Job"),)),
            (f"owner={UID}",),
            id="11.4.14 another kind's",
        ),
        pytest.param(pod("a", **ORPHAN), UNDER_LABELS, id="11.4.14 orphan"),
        pytest.param(pod("a", **ORPHAN, deleting_ms=NOW_MS), UNDER_LABELS, id="orphan being deleted"),
        pytest.param(
            pod("web-bcdfg", **ORPHAN, labels={}),
            ("orphan=default", "orphan=default/~web-"),
            id="orphan with a name as ours",
        ),
        pytest.param(pod("a", node_name=""), (f"owner={UID}",), id="unassigned"),
    ],
)
def test_pod_index(one, index):
    """By owner, or by namespace for an orphan; by node where its owner's kind is looked up so."""
    assert route_pod(one, False, QUEUES, KNOWN, by_node=("ReplicaSet",)).index == index
    assert route_pod(one, True, QUEUES, KNOWN).index == ()


def test_pods_of_some_kinds_of_owner_are_counted():
    """With the owner, which is the first of their entries."""
    counted = ("ReplicaSet",)
    owned = route_pod(pod("a"), False, QUEUES, KNOWN, counted)
    assert (owned.index[0], owned.kind) == (f"owner={UID}", class_of(pod("a")))
    assert route_pod(pod("a"), True, QUEUES, KNOWN, counted) == route_pod(pod("a"), True, QUEUES, KNOWN)
    job, orphan = pod("a", owner_refs=(with_fields(OURS, kind="Job"),)), pod("a", **ORPHAN)
    for one in (job, orphan):
        assert route_pod(one, False, QUEUES, KNOWN, counted) == route_pod(one, False, QUEUES, KNOWN)


SETS = table(daemons(), daemons(name="api", uid="3", selector=API.selector), queue="daemonset")
OWNED, ENDING = revision(1, "v1"), revision(1, "v1", deleting_ms=NOW_MS)
THEIR_REVISION = revision(1, "v1", owner_refs=(THEIR_DAEMONS,))


@pytest.mark.parametrize(
    ("one", "gone", "index", "wake"),
    [
        pytest.param(OWNED, False, (f"owner={UID}",), [], id="the set's: nobody, whoever made it"),
        pytest.param(revision(9, "v9", "copy"), False, (f"owner={UID}",), [], id="with any content"),
        pytest.param(THEIR_REVISION, False, (f"owner={THEIR_DAEMONS.uid}",), [], id="another's: nobody"),
        pytest.param(OWNED, True, (), ["default/web"], id="gone: the set, to make it anew"),
        pytest.param(THEIR_REVISION, True, (), ["default/api"], id="another's, gone"),
        pytest.param(ENDING, False, (f"owner={UID}",), ["default/web"], id="being deleted: as if it had gone"),
        pytest.param(
            revision(1, "v1", **ORPHAN), False, ("orphan=default",), ["default/web"], id="an orphan: who wants it"
        ),
        pytest.param(revision(1, "v1", **ORPHAN), True, (), [], id="an orphan that has gone"),
        pytest.param(
            revision(1, "v1", labels={}, **ORPHAN), False, ("orphan=default",), [], id="an orphan nobody selects"
        ),
    ],
)
def test_revision(one, gone, index, wake):
    """A revision that stays with its set wakes nobody."""
    routes = route_revision(one, gone, {"DaemonSet": "daemonset"}, SETS)
    assert routes.index[: len(index)] == index
    assert all(entry.startswith("orphan=") for entry in routes.index[len(index) :])
    assert routes.wake == tuple(("daemonset", key) for key in wake)


@pytest.mark.parametrize(
    ("owner", "gone", "routes"),
    [
        pytest.param(
            rs(), False, Routes((*LOOK, "=2"), (("replicaset", "default/web"),), observed=True), id="wakes itself"
        ),
        pytest.param(
            rs(), True, Routes((), (("replicaset", "default/web"),)), id="11.2.15 gone: wakes itself once more"
        ),
        pytest.param(
            rs(owner_refs=(DEPLOYMENT,)),
            False,
            Routes(("owner=dep-uid", *LOOK, "=2"), (("replicaset", "default/web"),), observed=True),
            id="found by its own controller",
        ),
        pytest.param(
            rs(owner_refs=(DEPLOYMENT,)), True, Routes((), (("replicaset", "default/web"),)), id="gone: found no more"
        ),
    ],
)
def test_owner(owner, gone, routes):
    """Every event about an owner wakes it."""
    assert route_owner(owner, gone, "replicaset", base_of) == routes


@pytest.mark.parametrize(
    ("generation", "observed", "expected"), [(1, 0, False), (1, 1, True), (3, 2, False), (3, 3, True), (0, 0, False)]
)
def test_what_its_controller_has_observed(generation, observed, expected):
    status = ReplicaSetStatus(observed_generation=observed)
    owner = rs(generation=generation, status=status)
    assert route_owner(owner, False, "replicaset", base_of).observed is expected
    assert route_replicaset(owner, False, "replicaset", {}, OwnerTable()).observed is expected
    assert not route_owner(owner, True, "replicaset", base_of).observed


@pytest.mark.parametrize(
    "selector",
    [None, label_selector({}), label_selector(None, (Requirement("app", "In"),))],
    ids=["none", "empty", "invalid"],
)
def test_owner_that_selects_nothing_is_not_woken_by_orphans(selector):
    """Here an empty selector matches nothing."""
    assert wake_of(pod("a", **ORPHAN), table(WEB, with_fields(WEB, selector=selector))) == ()


def test_owner_table_forgets():
    """An owner that has gone is not woken; its namesake elsewhere still is."""
    known = table(WEB, ABROAD)
    known.note("replicaset", WEB, gone=True)
    known.note("replicaset", API, gone=True)
    assert wake_of(pod("a", **ORPHAN), known) == ()
    assert wake_of(pod("a", **ORPHAN, namespace="other"), known) == (("replicaset", "other/web"),)
    known.clear()
    assert wake_of(pod("a", **ORPHAN, namespace="other"), known) == ()
