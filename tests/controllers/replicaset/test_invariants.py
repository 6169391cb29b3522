"""What holds for every decision, whatever the snapshot: properties over generated clusters."""

from itertools import count, islice

from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.controllers.flavour import REPLICASET
from oarlock.controllers.objects.codec import encode
from oarlock.controllers.objects.model import is_active
from oarlock.controllers.plan import Snapshot, Unanswered
from oarlock.controllers.replicaset.decide import decide
from oarlock.controllers.replicaset.status import status
from tests.controllers.builders import NOW_MS, OURS, THEIRS, UID, WEB_SLOTS, S, pod, rs, with_fields

BURST = 6
FLAVOUR = with_fields(REPLICASET, burst=BURST)
PARENT = with_fields(OURS, kind="Deployment", name="d", uid="dep-uid")

slot_indices = st.integers(0, 12)
names = slot_indices.map(WEB_SLOTS.name)
pod_fields = st.fixed_dictionaries(
    {
        "owner_refs": st.sampled_from([(OURS,), (OURS,), (OURS,), (), (THEIRS,)]),
        "labels": st.sampled_from([{"app": "web"}, {"app": "web"}, {"app": "web", "v": "2"}, {"app": "x"}, {}]),
        "phase": st.sampled_from(["Running", "Running", "Pending", "Unknown", "", "Failed", "Succeeded"]),
        "node_name": st.sampled_from(["", "n1", "n2"]),
        "deleting_ms": st.sampled_from([0, 0, 0, NOW_MS - S]),
        "deletion_cost": st.integers(-1, 1),
    }
)


EITHER = st.booleans()
SOMETIMES_DELETING = st.sampled_from([0, 0, 0, NOW_MS])


@st.composite
def unanswered_writes(draw, given_pods):
    """Of any names and pods, some of them quiet; names passed over."""
    creates = draw(st.frozensets(names, max_size=4))
    deletes = draw(st.frozensets(st.sampled_from([each.uid for each in given_pods] or ["none"]), max_size=3))
    quiet = draw(st.frozensets(st.sampled_from(sorted(creates | deletes) or ["none"]), max_size=2))
    return Unanswered(creates, deletes, quiet, draw(st.frozensets(names, max_size=2)))


@st.composite
def snapshots(draw, strict=EITHER, satisfied=EITHER, deleting=SOMETIMES_DELETING):
    """Any owner with any pods: ours, orphans, others', named by slots or otherwise."""
    pod_names = draw(st.lists(names | st.sampled_from(["stray-a", "stray-b", "stray-c"]), max_size=14, unique=True))
    owner = rs(
        draw(st.integers(0, 12)),
        strict=draw(strict),
        deleting_ms=draw(deleting),
        owner_refs=draw(st.sampled_from([(), (PARENT,)])),
    )
    given_pods = tuple(pod(name, **draw(pod_fields)) for name in pod_names)
    return Snapshot(
        owner,
        given_pods,
        draw(satisfied),
        draw(unanswered_writes(given_pods)),
        frozenset(draw(st.sets(names, max_size=3))),
        siblings=(owner,),
        related=(),
    )


def is_ours(one):
    return any(ref.controller and ref.uid == UID for ref in one.owner_refs)


@settings(max_examples=400)
@given(snapshots())
def test_every_plan(snapshot):
    """Bounds, exclusions, ownership, and the rules on names."""
    owner, unanswered = snapshot.owner, snapshot.unanswered
    plan = decide(snapshot, NOW_MS, FLAVOUR)
    borne = {p.name for p in snapshot.pods}

    assert owner.strict or not (plan.create and plan.delete), "never both"
    assert len(plan.create) <= BURST
    assert len(plan.delete) <= BURST
    if not snapshot.satisfied or owner.deleting_ms:
        assert not plan.create
        assert not plan.delete
    if owner.deleting_ms:
        assert not plan.adopt
        assert not plan.release

    assert len(set(plan.create)) == len(plan.create)
    assert borne.isdisjoint(plan.create), "a name that is borne cannot be created"
    assert snapshot.blocked.isdisjoint(plan.create)
    assert all(WEB_SLOTS.index_of(name) is not None for name in plan.create)
    if plan.create:
        may_come = unanswered.creates - {p.name for p in plan.claimed}
        if owner.strict:
            existing = {p.name for p in (*filter(is_ours, snapshot.pods), *plan.adopt)}
            assert len(existing | unanswered.creates | set(plan.create)) <= owner.replicas
        else:
            assert len(plan.claimed) + len(may_come | set(plan.create)) <= owner.replicas
            assert unanswered.passed.isdisjoint(set(plan.create) - may_come)
        assert unanswered.quiet.isdisjoint(plan.create)

    claimed = {(p.name, p.uid) for p in plan.claimed}
    assert len(set(plan.delete)) == len(plan.delete)
    if owner.strict and plan.diff < 0:
        finished = {(p.name, p.uid) for p in snapshot.pods if is_ours(p) and not is_active(p)}
        assert set(plan.delete) <= finished
    else:
        assert set(plan.delete) <= claimed
        may_go = {p.uid for p in plan.claimed} & (unanswered.deletes | {uid for _, uid in plan.delete})
        assert not plan.delete or len(claimed) - len(may_go) >= owner.replicas
    assert unanswered.quiet.isdisjoint(uid for _, uid in plan.delete)

    assert all(is_active(p) and p.labels.get("app") == "web" for p in plan.claimed)
    assert all(not p.owner_refs and p in plan.claimed for p in plan.adopt)
    assert all(is_ours(p) and is_active(p) and p.labels.get("app") != "web" for p in plan.release)


@settings(max_examples=200)
@given(snapshots(strict=st.just(False), satisfied=st.just(True), deleting=st.just(0)))
def test_as_many_as_wanted(snapshot):
    """Nothing is withheld but by the burst, or for what may come or go by itself."""
    plan = decide(snapshot, NOW_MS, FLAVOUR)
    unanswered = snapshot.unanswered
    may_come = unanswered.creates - {p.name for p in plan.claimed}
    may_go = unanswered.deletes & {p.uid for p in plan.claimed}
    missing = snapshot.owner.replicas - len(plan.claimed)
    if missing > 0:
        anew = [name for name in plan.create if name not in may_come]
        again = may_come - unanswered.quiet - snapshot.blocked - {p.name for p in snapshot.pods}
        room = missing - len(may_come)
        assert len(anew) == (min(room, BURST - min(BURST, len(again))) if room > 0 else 0)
        assert len(plan.create) - len(anew) == (min(BURST, len(again)) if room >= 0 else 0)
    else:
        anew = [uid for _, uid in plan.delete if uid not in may_go]
        assert len(anew) == min(BURST, max(0, -missing - len(may_go)))
        assert len(plan.delete) - len(anew) == (len(may_go - unanswered.quiet) if -missing >= len(may_go) else 0)


@given(snapshots())
def test_lowest_first(snapshot):
    """Below the highest name created anew, every index is borne, blocked, open, passed over or created as well."""
    plan = decide(snapshot, NOW_MS, FLAVOUR)
    strict, unanswered = snapshot.owner.strict, snapshot.unanswered
    held = unanswered.creates
    others = held if strict else held | unanswered.passed
    passed_over = {p.name for p in snapshot.pods} | snapshot.blocked | others | set(plan.create)
    fresh = [i for name in plan.create if name not in held and (i := WEB_SLOTS.index_of(name)) is not None]
    assert all(WEB_SLOTS.name(i) in passed_over for i in range(max(fresh, default=0)))
    if len(plan.create) > len(fresh) and not strict:
        assert list(plan.create[: len(plan.create) - len(fresh)]) == WEB_SLOTS.ordered(held & set(plan.create))


@given(snapshots(), st.randoms(use_true_random=False))
def test_creates_do_not_depend_on_the_order_of_pods(snapshot, random):
    """Two workers that see the same pods in different order choose the same names."""
    shuffled = list(snapshot.pods)
    random.shuffle(shuffled)
    other = decide(with_fields(snapshot, pods=tuple(shuffled)), NOW_MS, FLAVOUR)
    plan = decide(snapshot, NOW_MS, FLAVOUR)
    assert other.create == plan.create
    assert len(other.delete) == len(plan.delete)
    assert {p.uid for p in other.adopt} == {p.uid for p in plan.adopt}


@given(snapshots())
def test_nothing_is_mutated(snapshot):
    """Deciding and reckoning the status leave what they were given as it was, and can be repeated."""
    before = [encode(obj) for obj in (snapshot.owner, *snapshot.pods)]
    plan = decide(snapshot, NOW_MS, FLAVOUR)
    status(snapshot.owner, plan, "error", NOW_MS, True)
    assert [encode(obj) for obj in (snapshot.owner, *snapshot.pods)] == before
    assert decide(snapshot, NOW_MS, FLAVOUR) == plan


@given(snapshots())
def test_resolved_claims_change_nothing_when_all_succeeded(snapshot):
    """The plan counts on its adoptions; when they succeed, deciding again says the same without the claims."""
    plan = decide(snapshot, NOW_MS, FLAVOUR)
    resolved = with_fields(snapshot, adopted=frozenset(p.uid for p in plan.adopt))
    assert decide(resolved, NOW_MS, FLAVOUR) == with_fields(plan, adopt=(), release=())


@given(snapshots())
def test_status_agrees_with_the_plan_and_settles(snapshot):
    """The generation observed is the owner's; once written it is not due again."""
    owner = snapshot.owner
    plan = decide(snapshot, NOW_MS, FLAVOUR)
    new = status(owner, plan, "", NOW_MS, True)
    if new is not None:
        assert new.observed_generation <= owner.generation
        assert new.available <= new.ready <= new.replicas == len(plan.claimed)
        assert status(with_fields(owner, status=new), plan, "", NOW_MS, True) is None


@settings(max_examples=100)
@given(snapshots(deleting=st.just(0), satisfied=st.just(True)), st.integers(0, 12))
def test_undisturbed_owner_converges_without_waste(start, replicas):
    """Turn by turn the owner reaches its count; what was missing is created once, and then
    all rests.
    """
    # Others' pods and blocked names stay; ends of pods happen between turns.
    owner = with_fields(start.owner, replicas=replicas)
    present = tuple(p for p in start.pods if not p.deleting_ms)
    created = deleted = 0
    serial = count()
    first = decide(Snapshot(owner, present, blocked=start.blocked, siblings=(owner,), related=()), NOW_MS, FLAVOUR)
    for _ in range(20):
        snapshot = Snapshot(owner, present, blocked=start.blocked, siblings=(owner,), related=())
        plan = decide(snapshot, NOW_MS, FLAVOUR)
        if not plan.writes:
            break
        gone = {uid for _, uid in plan.delete}
        deleted += len(gone & {p.uid for p in plan.claimed})
        created += len(plan.create)
        changed = {p.uid: (OURS,) for p in plan.adopt} | {p.uid: () for p in plan.release}
        present = tuple(
            with_fields(p, owner_refs=changed.get(p.uid, p.owner_refs)) for p in present if p.uid not in gone
        ) + tuple(pod(name, uid=f"new-{next(serial)}") for name in plan.create)
    else:
        raise AssertionError("still writing after 20 turns")
    assert len(plan.claimed) == replicas
    assert created == max(0, -first.diff)
    assert deleted == max(0, first.diff)
    assert not decide(snapshot, NOW_MS, FLAVOUR).writes


class StrictRun:
    """Several writers of one strict owner over a store that refuses a create of an existing name. Each writer
    decides on any earlier view, and its creates land at any later time; pods end and leave at any time."""

    def __init__(self, replicas):
        self.owner = rs(replicas, strict=True)
        self.existing = {}
        self.views = [()]
        self.in_flight = []
        self.serial = count()

    def changed(self):
        self.views.append(tuple(self.existing.values()))

    def decide(self, lag):
        view = self.views[-1 - min(lag, len(self.views) - 1)]
        self.in_flight.extend(decide(Snapshot(self.owner, view), NOW_MS).create)

    def land(self, which):
        if self.in_flight:
            name = self.in_flight.pop(which % len(self.in_flight))
            if name not in self.existing:
                self.existing[name] = pod(name, uid=f"uid-{next(self.serial)}")
                self.changed()

    def end(self, which):
        if self.existing:
            name = sorted(self.existing)[which % len(self.existing)]
            one = self.existing[name]
            if one.deleting_ms:
                del self.existing[name]
            else:
                self.existing[name] = with_fields(one, deleting_ms=NOW_MS)
            self.changed()


steps = st.tuples(st.sampled_from(["decide", "decide", "land", "land", "land", "end"]), st.integers(0, 30))


@settings(max_examples=300)
@given(st.integers(0, 5), st.lists(steps, max_size=60))
def test_strict_never_exceeds_its_count(replicas, script):
    """No assumption on locks, records, the age of views or the time a create needs: names and the store
    suffice.
    """
    run = StrictRun(replicas)
    for step, number in script:
        getattr(run, step)(number)
        assert len(run.existing) <= replicas


def test_standard_mode_needs_more_than_names():
    """The same schedule that strict mode survives breaks standard mode without its record: why names
    are reserved.
    """
    owner = rs(1)
    ending = pod(WEB_SLOTS.name(0), deleting_ms=NOW_MS)
    late = decide(Snapshot(owner, ()), NOW_MS).create  # decided long ago, still in flight
    replaced = decide(Snapshot(owner, (ending,)), NOW_MS).create
    assert set(late).isdisjoint(replaced), "two pods once the ending one has left and the late create lands"
    unanswered = Unanswered(creates=frozenset(late))
    assert decide(Snapshot(owner, (ending,), unanswered=unanswered), NOW_MS).create == ()


def test_slots_of_large_owners_are_all_different():
    """3,000 pods in six bursts bear 3,000 names."""
    present = ()
    while len(present) < 3000:
        plan = decide(Snapshot(rs(3000), present), NOW_MS)
        assert len(plan.create) == 500
        present += tuple(pod(name) for name in plan.create)
    assert [p.name for p in present] == list(islice(WEB_SLOTS.free(()), 3000))
