"""What one turn decides, case by case."""

import pytest

from oarlock.controllers.flavour import BURST, REPLICASET
from oarlock.controllers.objects.model import Requirement, label_selector
from oarlock.controllers.plan import Plan, Snapshot, Unanswered
from oarlock.controllers.replicaset.decide import decide
from tests.controllers.builders import (
    NOW_MS,
    OURS,
    THEIRS,
    UID,
    WEB_SLOTS,
    S,
    pod,
    pods,
    rs,
    slot_names,
    with_fields,
)


def plan_of(replicas, letters, **fields):
    return decide(Snapshot(rs(replicas), pods(letters), **fields), NOW_MS)


@pytest.mark.parametrize(
    ("replicas", "letters", "create", "delete"),
    [
        pytest.param(2, "RR", (), (), id="11.2.1 two of two: nothing to do"),
        pytest.param(0, "", (), (), id="none of none"),
        pytest.param(3, "", (0, 1, 2), (), id="three are missing"),
        pytest.param(3, "RpR", (), (), id="a pending one counts"),
        pytest.param(3, "Ru", (2,), (), id="an unassigned one counts"),
        pytest.param(2, "Rt", (2,), (), id="11.5.4 a terminating pod is replaced at once, under another name"),
        pytest.param(2, "RF", (2,), (), id="11.2.9 a failed pod is replaced, and stays"),
        pytest.param(2, "RS", (2,), (), id="11.4.8 a succeeded pod is replaced"),
        pytest.param(4, "tFRR", (4, 5), (), id="11.5.4 one terminating and one failed of four"),
        pytest.param(2, "xx", (2, 3), (), id="11.2.19 pods that match but are another's do not count"),
        pytest.param(1, "Rp", (), (1,), id="the pending one goes first"),
        pytest.param(1, "unR", (), (0, 1), id="surplus of two: unassigned, then not ready"),
        pytest.param(0, "RRR", (), (0, 1, 2), id="all go, in the order given"),
        pytest.param(0, "RtF", (), (0,), id="only active pods are picked"),
        pytest.param(2, "noo", (), (0,), id="11.5.11 adopted orphans count, the surplus goes at once"),
        pytest.param(2, "Rm", (2,), (), id="a relabelled pod is replaced in the same turn"),
    ],
)
def test_counts(replicas, letters, create, delete):
    """Create or delete as many as the active pods that are ours differ from the wanted number."""
    plan = plan_of(replicas, letters)
    ours = pods(letters)
    assert plan.create == slot_names(*create)
    assert sorted(plan.delete) == sorted((ours[i].name, ours[i].uid) for i in delete)
    assert not plan.wants_related


@pytest.mark.parametrize(
    ("letters", "adopt", "release", "diff"),
    [
        pytest.param("RR", (), (), 0, id="ours already"),
        pytest.param("Ro", (1,), (), 0, id="an orphan that is selected is adopted"),
        pytest.param("Rm", (), (1,), -1, id="ours, no longer selected: released"),
        pytest.param("xx", (), (), -2, id="11.2.19 another's: no request"),
        pytest.param("Rmo", (2,), (1,), 0, id="one leaves, one comes"),
    ],
)
def test_claims(letters, adopt, release, diff):
    """Claims come first in a plan, and the count expects them to succeed."""
    plan = plan_of(2, letters)
    given = pods(letters)
    assert plan.adopt == tuple(given[i] for i in adopt)
    assert plan.release == tuple(given[i] for i in release)
    assert plan.diff == diff


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"deleting_ms": NOW_MS}, id="terminating"),
        pytest.param({"phase": "Failed"}, id="failed"),
        pytest.param({"phase": "Succeeded"}, id="succeeded"),
    ],
)
def test_inactive_pods_are_neither_adopted_nor_released(fields):
    """Inactive pods are left out before claims are considered."""
    orphan = pod("a", owner_refs=(), **fields)
    relabelled = pod("b", labels={"app": "else"}, **fields)
    plan = decide(Snapshot(rs(0), (orphan, relabelled)), NOW_MS)
    assert plan == Plan()


def test_adoption_that_found_its_pod_gone_is_decided_again_without_it():
    """NotFound is no error; the turn goes on with the others and replaces the one that went."""
    snapshot = Snapshot(rs(3), pods("Roo"))
    first = decide(snapshot, NOW_MS)
    assert not first.create
    there, gone = first.adopt
    again = decide(with_fields(snapshot, adopted=frozenset({there.uid})), NOW_MS)
    assert (again.adopt, again.release) == ((), ())
    assert gone not in again.claimed
    assert there in again.claimed
    assert again.create == slot_names(3), "the name of the orphan in the snapshot is not used"


def test_deleting_owner_does_nothing_but_count():
    """11.2.21: no adoption, no release, no create, no delete; its pods still count for the status."""
    plan = decide(Snapshot(rs(2, deleting_ms=NOW_MS), pods("Rom")), NOW_MS)
    assert not plan.writes
    assert plan.claimed == pods("R")


@pytest.mark.parametrize("letters", ["", "RRRR"], ids=["too few", "too many"])
def test_unsatisfied_owner_only_claims(letters):
    """11.2.4: while something announced is outstanding nothing is created or deleted, claims and counts go
    on.
    """
    given = (*pods(letters), pod("orphan", owner_refs=()))
    plan = decide(Snapshot(rs(2), given, satisfied=False), NOW_MS)
    assert plan.adopt == given[-1:]
    assert (plan.create, plan.delete) == ((), ())
    assert len(plan.claimed) == len(given)


@pytest.mark.parametrize("satisfied", [True, False])
def test_invalid_selector_leaves_everything_alone(satisfied):
    """Logged, no request of any kind, not retried."""
    broken = label_selector(None, (Requirement("app", "In"),))
    plan = decide(Snapshot(rs(2, selector=broken), pods("Rxo"), satisfied), NOW_MS)
    assert plan == Plan(invalid=broken.error)
    assert "at least one value" in plan.invalid


def test_missing_selector_lets_go_of_all():
    """Without a selector nothing matches, so what is owned is released."""
    plan = decide(Snapshot(rs(0, selector=None), pods("Ro")), NOW_MS)
    assert plan.release == pods("R")
    assert not plan.adopt


def test_empty_selector_claims_everything():
    """Here, unlike in routing, an empty selector matches everything."""
    plan = decide(Snapshot(rs(2, selector=label_selector({})), pods("mo")), NOW_MS)
    assert plan.adopt == pods("mo")[1:]
    assert not plan.release


@pytest.mark.parametrize(
    ("burst", "replicas"),
    [pytest.param(b, r, id=f"11.2.13 burst {b}, {r} replicas") for b, r in [(5, 30), (5, 12), (3, 2)]],
)
def test_burst_steps_up_and_down(burst, replicas):
    """11.2.13: up in steps of the burst, then down to none; a step with something unseen does nothing."""
    flavour = with_fields(REPLICASET, burst=burst)
    present = ()
    while len(present) < replicas:
        snapshot = Snapshot(rs(replicas), present)
        plan = decide(snapshot, NOW_MS, flavour)
        assert len(plan.create) == min(burst, replicas - len(present))
        waiting = decide(with_fields(snapshot, satisfied=False), NOW_MS, flavour)
        assert not waiting.writes
        present += tuple(pod(name) for name in plan.create)
    while present:
        snapshot = Snapshot(rs(0), present)
        plan = decide(snapshot, NOW_MS, flavour)
        assert len(plan.delete) == min(burst, len(present))
        assert not decide(with_fields(snapshot, satisfied=False), NOW_MS, flavour).writes
        present = tuple(p for p in present if (p.name, p.uid) not in plan.delete)


def test_burst_is_500():
    """At most 500 creates or deletes a turn."""
    assert BURST == 500
    assert len(plan_of(1200, "").create) == 500
    assert len(plan_of(0, "R" * 700).delete) == 500


def test_creates_take_the_lowest_names_nobody_bears():
    """A name borne by any pod, whatever its state or owner, or known to be blocked, is passed over."""
    given = tuple(
        pod(name, **fields)
        for name, fields in zip(
            slot_names(1, 2, 4, 5),
            (
                {},
                {"deleting_ms": NOW_MS},
                {"owner_refs": (THEIRS,)},
                {"owner_refs": (), "labels": {}, "phase": "Failed"},
            ),
            strict=True,
        )
    )
    plan = decide(Snapshot(rs(5), given, blocked=frozenset(slot_names(3, 99))), NOW_MS)
    assert plan.create == slot_names(0, 6, 7, 8)


def may_come(*names, **fields):
    """Creates of these names have no answer."""
    return Unanswered(creates=frozenset(names), **fields)


def may_go(*names, **fields):
    """Deletes of these pods have no answer."""
    return Unanswered(deletes=frozenset(f"uid-{name}" for name in names), **fields)


SLOT = WEB_SLOTS.name


@pytest.mark.parametrize(
    ("replicas", "letters", "open_names", "create"),
    [
        pytest.param(3, "", (7, 5), (5, 7, 0), id="sent again first, the rest anew"),
        pytest.param(2, "", (7, 5), (5, 7), id="as many as are missing"),
        pytest.param(1, "", (7, 5), (), id="one more than is missing: both may come, so none is sent"),
        pytest.param(2, "RR", (0, 1), (), id="pods that run count once"),
        pytest.param(2, "RR", (5,), (), id="nothing is missing, one may come"),
        pytest.param(2, "Rt", (1,), (), id="an ending bearer: the create may land once it has gone"),
        pytest.param(2, "RF", (1,), (), id="a failed bearer"),
        pytest.param(2, "Rm", (1,), (), id="a bearer that was let go"),
        pytest.param(2, "Rx", (1,), (), id="another's pod bears it"),
        pytest.param(5, "Rtt", (1,), (3, 4, 5), id="it takes one place, the others are filled"),
        pytest.param(3, "Rt", (1, 4), (4,), id="one borne, one not"),
        pytest.param(1, "Rt", (1, 2), (), id="nothing goes for what may come"),
        pytest.param(1, "RR", (5,), (), id="nor is it sent while too many are there"),
    ],
)
def test_creates_without_an_answer(replicas, letters, open_names, create):
    """Each takes a place. They are sent again, and others added, only as long as all of them may come."""
    plan = plan_of(replicas, letters, unanswered=may_come(*slot_names(*open_names)))
    assert plan.create == slot_names(*create)


@pytest.mark.parametrize(
    ("replicas", "letters", "open_pods", "delete"),
    [
        pytest.param(1, "RRn", (0,), (0, 2), id="sent again, and the rest of the surplus"),
        pytest.param(2, "RRR", (0,), (0,), id="sent again"),
        pytest.param(3, "RRR", (0,), (), id="not wanted any more: not sent again, and no pod is made for it"),
        pytest.param(1, "RRR", (0, 1, 2), (), id="more than the surplus may go: none is sent again"),
        pytest.param(0, "RRR", (0, 1, 2), (0, 1, 2), id="all are to go"),
        pytest.param(0, "RRR", (), (0, 1, 2), id="none is open"),
        pytest.param(2, "RRt", (2,), (), id="a pod that ends is no news"),
    ],
)
def test_deletes_without_an_answer(replicas, letters, open_pods, delete):
    """A pod that may have gone counts as gone: nothing else goes in its place, and it only while enough others stay."""
    given = pods(letters)
    plan = plan_of(replicas, letters, unanswered=may_go(*slot_names(*open_pods)))
    assert plan.create == ()
    assert sorted(plan.delete) == sorted((given[i].name, given[i].uid) for i in delete)


def test_a_bearer_of_others_that_ends_takes_the_place():
    foreign = pod(SLOT(1), owner_refs=(), deleting_ms=NOW_MS)
    plan = decide(Snapshot(rs(1), (foreign,), unanswered=may_come(SLOT(1))), NOW_MS)
    assert not plan.create


def test_a_blocked_name_takes_a_place():
    names = frozenset(slot_names(4))
    assert not plan_of(1, "", unanswered=may_come(*names), blocked=names).create
    assert plan_of(2, "", unanswered=may_come(*names), blocked=names).create == slot_names(0)


def test_what_is_quiet_is_not_sent_and_takes_its_place():
    unanswered = may_come(SLOT(0), SLOT(1), quiet=frozenset({SLOT(0)}))
    assert plan_of(3, "", unanswered=unanswered).create == slot_names(1, 2)
    unanswered = may_go(SLOT(0), quiet=frozenset({f"uid-{SLOT(0)}"}))
    assert [name for name, _ in plan_of(1, "RRn", unanswered=unanswered).delete] == list(slot_names(2))


def test_other_names_are_taken_for_those_passed_over():
    assert plan_of(2, "", unanswered=Unanswered(passed=frozenset(slot_names(0, 2)))).create == slot_names(1, 3)


def test_a_name_that_is_no_slot_takes_a_place_and_is_never_created():
    assert plan_of(3, "", unanswered=may_come("web-foreign", SLOT(9))).create == slot_names(9, 0)


class TestStrict:
    """Every existing pod occupies its slot until it has left the API."""

    @pytest.mark.parametrize(
        ("replicas", "letters", "create", "delete"),
        [
            pytest.param(3, "", (0, 1, 2), (), id="three are missing"),
            pytest.param(3, "Rt", (2,), (), id="a terminating pod keeps its place"),
            pytest.param(2, "Rt", (), (), id="no replacement beside a terminating pod"),
            pytest.param(2, "RF", (), (1,), id="a failed pod is deleted first"),
            pytest.param(3, "RS", (2,), (1,), id="beside the one that is missing anyway"),
            pytest.param(2, "RRF", (), (), id="a failed pod beside enough others stays"),
            pytest.param(1, "Rn", (), (1,), id="surplus is ranked as ever"),
            pytest.param(2, "RttR", (), (), id="enough"),
            pytest.param(3, "Rttt", (), (), id="more exist than are wanted: wait"),
            pytest.param(3, "oR", (2,), (), id="an adopted orphan counts"),
            pytest.param(2, "xR", (2,), (), id="another's does not"),
        ],
    )
    def test_counts(self, replicas, letters, create, delete):
        plan = decide(Snapshot(rs(replicas, strict=True), pods(letters)), NOW_MS)
        given = pods(letters)
        assert plan.create == slot_names(*create)
        assert plan.delete == tuple((given[i].name, given[i].uid) for i in delete)

    @pytest.mark.parametrize(
        ("replicas", "letters", "unanswered", "create"),
        [
            pytest.param(2, "", may_come(SLOT(0)), (0, 1), id="one of them may come"),
            pytest.param(2, "", may_come(SLOT(5)), (5, 0), id="another may come: it takes a place"),
            pytest.param(1, "", may_come(SLOT(5), SLOT(0)), (), id="two may come, one is wanted"),
            pytest.param(2, "t", may_come(SLOT(0)), (1,), id="its bearer ends: counted once"),
            pytest.param(2, "tx", may_come(SLOT(1)), (), id="another's pod bears it"),
            pytest.param(2, "", Unanswered(passed=frozenset({SLOT(0)})), (1, 0), id="one was refused: it comes last"),
        ],
    )
    def test_what_is_open(self, replicas, letters, unanswered, create):
        """No name is taken in the place of one that was refused: two writers have to agree on names."""
        plan = decide(Snapshot(rs(replicas, strict=True), pods(letters), unanswered=unanswered), NOW_MS)
        assert plan.create == slot_names(*create)

    def test_a_failed_pod_that_cannot_be_deleted_stops_nothing(self):
        quiet = Unanswered(deletes=frozenset({f"uid-{SLOT(0)}"}), quiet=frozenset({f"uid-{SLOT(0)}"}))
        plan = decide(Snapshot(rs(3, strict=True), pods("FR"), unanswered=quiet), NOW_MS)
        assert (plan.create, plan.delete) == (slot_names(2), ())

    def test_a_quiet_name_keeps_its_place(self):
        """The owner stays one short, and no other name is taken for it."""
        quiet = frozenset({SLOT(0)})
        plan = decide(Snapshot(rs(2, strict=True), (), unanswered=may_come(SLOT(0), quiet=quiet)), NOW_MS)
        assert plan.create == slot_names(1)

    def test_finished_pod_being_deleted_is_waited_for(self):
        ending = pod(WEB_SLOTS.name(0), phase="Failed", deleting_ms=NOW_MS)
        plan = decide(Snapshot(rs(1, strict=True), (ending,)), NOW_MS)
        assert not plan.writes


class TestRelated:
    """Pods of related owners are asked for only when they can matter."""

    DEPLOYMENT = OURS.__class__("apps/v1", "Deployment", "web", "dep-uid", True, True)

    def owned(self, replicas):
        return rs(replicas, owner_refs=(self.DEPLOYMENT,))

    @pytest.mark.parametrize(
        ("owner", "letters", "wanted"),
        [
            pytest.param(rs(1), "RR", False, id="11.2.7 an owner without controller has no relatives"),
            pytest.param(rs(1, owner_refs=(DEPLOYMENT,)), "RR", True, id="some of several go"),
            pytest.param(rs(0, owner_refs=(DEPLOYMENT,)), "RR", False, id="all go"),
            pytest.param(rs(3, owner_refs=(DEPLOYMENT,)), "RR", False, id="too few"),
            pytest.param(rs(2, owner_refs=(DEPLOYMENT,)), "RR", False, id="as many as wanted"),
        ],
    )
    def test_are_wanted(self, owner, letters, wanted):
        plan = decide(Snapshot(owner, pods(letters)), NOW_MS)
        assert plan.wants_related is wanted
        assert not (wanted and plan.writes)

    def test_are_not_wanted_by_a_kind_that_does_not_colocate(self):
        """Inert for ReplicationControllers."""
        plan = decide(Snapshot(self.owned(1), pods("RR")), NOW_MS, with_fields(REPLICASET, colocates=False))
        assert not plan.wants_related
        assert len(plan.delete) == 1

    def test_tell_which_node_is_crowded(self):
        """11.2.26: of two ready ones the pod on the node with more related pods goes."""
        a, b = pod("a", node_name="n1"), pod("b", node_name="n2")
        sibling = rs(0, name="old", uid="old-uid", owner_refs=(self.DEPLOYMENT,))
        elsewhere = pod("c", node_name="n2", owner_refs=(with_fields(OURS, uid="old-uid", name="old"),))
        owner = self.owned(1)
        snapshot = Snapshot(owner, (a, b), siblings=(owner, sibling), related=(elsewhere,))
        assert decide(snapshot, NOW_MS).delete == (("b", "uid-b"),)

    def test_include_the_pods_already_in_sight(self):
        """The owner's own pods and the orphans need not be supplied twice."""
        given = (pod("a", node_name="n1"), pod("b", node_name="n2"), pod("c", node_name="n2"))
        snapshot = Snapshot(self.owned(2), given, siblings=(self.owned(2),), related=())
        assert decide(snapshot, NOW_MS).delete == (("b", "uid-b"),)

    @pytest.mark.parametrize(
        ("kind", "goes"), [("Deployment", ["b", "c"]), ("Gadget", ["a", "b"])], ids=["a rollout", "another owner"]
    )
    def test_a_rollout_counts_on_the_pods_that_are_available(self, kind, goes):
        """Of four ready pods two are not available yet, one of them beside an old one. Ranked by their nodes alone, the
        old one would go with it, and one of the two would stay.
        """
        fresh = {"ready_since_ms": NOW_MS - S}
        given = (pod("a", node_name="n1"), pod("b", node_name="n1", **fresh), pod("c", node_name="n2", **fresh))
        given += (pod("d", node_name="n3"),)
        owner = rs(2, owner_refs=(with_fields(self.DEPLOYMENT, kind=kind),), min_ready_seconds=10)
        plan = decide(Snapshot(owner, given, siblings=(owner,), related=()), NOW_MS)
        assert sorted(name for name, _ in plan.delete) == goes

    def test_failed_lookup_is_no_obstacle(self):
        """Without related pods the other rules decide."""
        given = (pod("a"), pod("b", created_ms=NOW_MS - S))
        snapshot = Snapshot(self.owned(1), given, siblings=(), related=())
        assert decide(snapshot, NOW_MS).delete == (("b", "uid-b"),)


def test_terminating_pods_are_those_owned_selected_and_unfinished():
    """11.4.6: two of seven mixed ones."""
    going = {"deleting_ms": NOW_MS}
    given = (
        pod("a"),
        pod("b", **going),
        pod("c", phase="Pending", **going),
        pod("d", phase="Failed", **going),
        pod("e", labels={}, **going),
        pod("f", owner_refs=(THEIRS,), **going),
        pod("g", owner_refs=(), **going),
    )
    assert decide(Snapshot(rs(1), given), NOW_MS).terminating == 2


def test_ratios_of_deletion_ages():
    """Whole multiples of the age of the youngest ready pod, for ready victims only."""
    given = (
        pod("old", created_ms=NOW_MS - 25 * S, ready_since_ms=NOW_MS - 1),
        pod("young", created_ms=NOW_MS - 10 * S, ready_since_ms=NOW_MS - 20 * S),
        pod("unready", created_ms=NOW_MS - S, ready=False),
    )
    plan = decide(Snapshot(rs(1), given), NOW_MS)
    assert [name for name, _ in plan.delete] == ["unready", "old"]
    assert plan.age_ratios == (("uid-old", 2),)
    assert decide(Snapshot(rs(0), given), NOW_MS).age_ratios == (), "no ranking, no ratio"


def test_ownership_goes_by_uid_alone():
    """Kind and name of the reference are not compared; a namesake's pods are not ours."""
    renamed = pod("a", owner_refs=(with_fields(OURS, kind="Other", name="other"),))
    namesake = pod("b", owner_refs=(with_fields(OURS, uid="former-uid"),))
    plan = decide(Snapshot(rs(1), (renamed, namesake)), NOW_MS)
    assert not plan.writes
    assert plan.claimed == (renamed,)
    assert renamed.owner_refs[0].uid == UID
