"""What a turn does about a Deployment, in upstream's order. Numbers are those of section 23 of the upstream cases."""

from typing import Any

import pytest

from oarlock.controllers.deployment.annotations import REVISION, ROLLBACK_TO
from oarlock.controllers.deployment.events import SELECTING_ALL, rolled_back, scaled
from oarlock.controllers.deployment.model import RECREATE, ROLLING_UPDATE
from oarlock.controllers.deployment.plan import Plan, Rollout
from oarlock.controllers.objects.model import HASH_LABEL, label_selector
from oarlock.controllers.objects.selector import Requirement
from tests.controllers.builders import WEB, with_fields
from tests.controllers.deployment.deployment_builders import THEIRS, decided, owned, said
from tests.controllers.deployment.sizes_builders import dep, pod_of, writes


def names(replicasets: Any) -> list[str]:
    return [each.name for each in replicasets]


def told(plan: Plan) -> str:
    """The stages of a plan that are not empty, in a line."""
    parts = [f"{update.replicaset.name} {update.replicaset.replicas}->{update.replicas}" for update in plan.updates]
    parts += [f"create {plan.create.replicas}"] if plan.create else []
    parts += ["rollback"] if plan.rollback else []
    parts += [f"prune {' '.join(names(plan.prune))}"] if plan.prune else []
    parts += ["wants pods"] if plan.wants_pods else []
    parts += [f"error {plan.error}"] if plan.error else []
    parts += ["judged"] if plan.rollout.evaluated else []
    return ", ".join(parts)


@pytest.mark.parametrize(
    ("selector", "invalid", "events"),
    [
        pytest.param(label_selector({}), "the selector is empty", (SELECTING_ALL,), id="23.6.3 an empty one"),
        pytest.param(None, "the selector is empty", (SELECTING_ALL,), id="none"),
        pytest.param(label_selector({"-a": "b"}), "label key", (), id="one that the API refuses"),
    ],
)
def test_23_6_3_selectors(selector, invalid, events):
    """23.6.3: nothing is created, nor adopted."""
    plan = decided(dep(3, selector=selector), owned("orphan", 1, owner_refs=()))
    assert invalid in plan.invalid
    assert plan == Plan(invalid=plan.invalid, events=events)


ORPHAN, ODD = owned("orphan", 1, owner_refs=()), owned("odd", 1, labels={"app": "x"})
NEW, OLD = owned("new", 3, 2, desired=3), owned("old", 0, 1, age_s=90)


@pytest.mark.parametrize(
    ("replicasets", "deployment", "adopted", "expected"),
    [
        pytest.param([NEW, OLD], {}, None, ([], [], ["new", "old"]), id="23.6.6 only its own"),
        pytest.param([ORPHAN, OLD], {}, None, (["orphan"], [], []), id="23.6.6 an orphan: nothing else yet"),
        pytest.param([ODD, NEW], {}, None, ([], ["odd"], []), id="23.6.6 no longer selected: nothing else yet"),
        pytest.param([ORPHAN, NEW], {}, {"uid-orphan"}, ([], [], ["new", "orphan"]), id="23.6.6 adopted"),
        pytest.param([ORPHAN, NEW], {}, set(), ([], [], ["new"]), id="not adopted"),
        pytest.param([ODD, NEW], {}, set(), ([], [], ["new"]), id="23.6.6 released"),
        pytest.param([with_fields(OLD, owner_refs=(THEIRS,)), NEW], {}, None, ([], [], ["new"]), id="another's"),
        pytest.param(
            [with_fields(OLD, namespace="other"), NEW], {}, None, ([], [], ["new"]), id="of another namespace"
        ),
        pytest.param([ORPHAN, ODD, NEW], {"deleting_ms": 1}, None, ([], [], ["new"]), id="23.6.2 no claims"),
    ],
)
def test_23_6_6_claims(replicasets, deployment, adopted, expected):
    """23.6.6: to adopt, to release, and what the status counts."""
    adopted = None if adopted is None else frozenset(adopted)
    plan = decided(dep(3, **deployment), *replicasets, adopted=adopted)
    counted = [*([plan.rollout.new] if plan.rollout.new else []), *plan.rollout.old]
    assert (names(plan.adopt), names(plan.release), names(counted)) == expected
    if plan.adopt or plan.release:
        assert plan == Plan(adopt=plan.adopt, release=plan.release)


DONE = said(3, 3, 3, 3)
TO_FIRST = {REVISION: "2", ROLLBACK_TO: "1"}
KEEP_NONE = {"revision_history_limit": 0}
GROWN = owned("new", 3, 2, desired=2)  # its size was decided for a Deployment of 2
RAISED = owned("new", 3, 1, desired=3)  # its revision is out of date beside one that has 1
BAD = {"max_surge": "x"}
ODD_TYPE = "error unexpected deployment strategy type: Sideways, judged"


@pytest.mark.parametrize(
    ("deployment", "replicasets", "expected"),
    [
        pytest.param({"max_surge": 1}, [], "create 3, judged", id="23.6.1 the first one"),
        pytest.param({"max_surge": 1}, [owned("old", 3, 1)], "create 1, judged", id="a new template: by the surge"),
        pytest.param({}, [owned("old", 3, 1)], "create 0, judged", id="without a surge: of no pods yet"),
        pytest.param({}, [NEW, OLD], "judged", id="complete, by what there is"),
        pytest.param({}, [NEW, owned("old", 1, 1)], "old 1->0, judged", id="the old side"),
        pytest.param({}, [owned("new", 2, 2), owned("old", 0, 1)], "new 2->3, judged", id="the new side"),
        pytest.param(KEEP_NONE, [NEW, OLD], "judged", id="no cleanup before it was said to be complete"),
        pytest.param(KEEP_NONE | {"status": DONE}, [NEW, OLD], "prune old, judged", id="cleanup"),
        pytest.param(
            KEEP_NONE | {"status": DONE, "generation": 2}, [NEW, OLD], "judged", id="not of another generation"
        ),
        pytest.param({}, [RAISED, OLD], "new 3->3, judged", id="a revision is an update by itself"),
        pytest.param({}, [RAISED, owned("old", 1, 1)], "new 3->3, judged", id="and ends the plan"),
        pytest.param({"min_ready_seconds": 5}, [NEW, OLD], "new 3->3, judged", id="minReadySeconds as well"),
        pytest.param({"paused": True}, [RAISED, OLD], "new 3->3", id="while it is paused as well"),
        pytest.param({"paused": True}, [], "", id="23.7.4 paused: nothing is created"),
        pytest.param({"paused": True}, [owned("old", 3, 1)], "", id="23.7.4 nor rolled out"),
        pytest.param({"paused": True}, [owned("old", 1, 1)], "old 1->3", id="23.7.5 but scaled"),
        pytest.param({"paused": True} | KEEP_NONE, [NEW, OLD], "prune old", id="and cleaned up, complete or not"),
        pytest.param(
            {"paused": True} | KEEP_NONE, [OLD], "old 0->3", id="but for the one that gets pods by the same plan"
        ),
        pytest.param({"paused": True} | KEEP_NONE | BAD, [OLD], "error maxSurge", id="with bad limits"),
        pytest.param({"paused": True, "annotations": TO_FIRST}, [NEW, OLD], "", id="not rolled back"),
        pytest.param(
            {"paused": True, "annotations": TO_FIRST} | KEEP_NONE, [NEW, OLD], "", id="nor cleaned up, with a request"
        ),
        pytest.param({"annotations": TO_FIRST}, [NEW, OLD], "rollback", id="23.6.4 a rollback"),
        pytest.param({"annotations": TO_FIRST}, [GROWN, OLD], "rollback", id="before a change of the size"),
        pytest.param({"annotations": TO_FIRST, "max_surge": 1}, [owned("old", 3, 1)], "create 1", id="not yet"),
        pytest.param(
            {"annotations": TO_FIRST, "strategy": RECREATE}, [owned("old", 3, 1)], "create 0", id="no pods by it"
        ),
        pytest.param({"annotations": {ROLLBACK_TO: "x"}}, [NEW, OLD], "judged", id="no request"),
        pytest.param({}, [GROWN, OLD], "new 3->3", id="a change of the size before a rollout"),
        pytest.param({}, [owned("new", 2, 2, desired=2), OLD], "new 2->3", id="a change of the size"),
        pytest.param(
            KEEP_NONE | {"status": DONE}, [GROWN, OLD], "new 3->3", id="no cleanup along with a change of the size"
        ),
        pytest.param({"strategy": "Sideways"}, [NEW], ODD_TYPE, id="no strategy"),
        pytest.param(BAD, [], "error maxSurge, judged", id="no limit: nothing is created"),
        pytest.param(BAD, [NEW, owned("old", 1, 1)], "error maxSurge, judged", id="no limit: nothing is rolled"),
        pytest.param({"deleting_ms": 1}, [RAISED, owned("old", 1, 1)], "", id="23.6.2 being deleted: only the status"),
        pytest.param({"deleting_ms": 1, "annotations": TO_FIRST}, [NEW, OLD], "", id="23.6.2 whatever is asked"),
    ],
)
def test_order(deployment, replicasets, expected):
    """Section 6, for a Deployment of 3."""
    plan = decided(dep(3, **deployment), *replicasets)
    if plan.error.startswith("maxSurge"):
        plan = with_fields(plan, error="maxSurge")
    assert told(plan) == expected


@pytest.mark.parametrize(
    ("replicasets", "pods", "expected"),
    [
        pytest.param([], None, "create 3, judged", id="the first one"),
        pytest.param([owned("old", 3, 1)], None, "old 3->0, judged", id="23.3.1 the old ones first"),
        pytest.param([owned("old", 0, 1, pods=1)], None, "judged", id="23.3.2 their pods are to go"),
        pytest.param([owned("old", 0, 1)], None, "wants pods, judged", id="none is said to be left: is it so?"),
        pytest.param([owned("old", 0, 1)], [pod_of("old")], "judged", id="it is not"),
        pytest.param([owned("old", 0, 1)], [], "create 3, judged", id="it is: the new one"),
        pytest.param([owned("new", 0, 2), owned("old", 0, 1)], [], "new 0->3, judged", id="it was there before"),
        pytest.param([NEW, OLD], [], "prune old, judged", id="complete"),
    ],
)
def test_recreate(replicasets, pods, expected):
    """Section 12. `pods`: None until they are asked for."""
    deployment = dep(3, strategy=RECREATE, status=DONE, **KEEP_NONE)
    assert told(decided(deployment, *replicasets, pods=None if pods is None else tuple(pods))) == expected


@pytest.mark.parametrize(
    ("replicasets", "revision"),
    [
        pytest.param([], "1", id="of a new one"),
        pytest.param([owned("old", 3, 4)], "5", id="of one after others"),
        pytest.param([owned("new", 3, 7, desired=3), OLD], "7", id="of the one there is, also if others are gone"),
        pytest.param([RAISED, OLD], "", id="not before it has it"),
    ],
)
def test_revision(replicasets, revision):
    """Section 9.3: the Deployment gets the number of its new ReplicaSet."""
    plan = decided(dep(3, max_surge=1), *replicasets)
    assert plan.revision == revision
    if plan.create:
        assert plan.create.annotations[REVISION] == revision


def test_23_7_7_a_rollback_without_revisions():
    """23.7.7: an old ReplicaSet without the annotation is found by no number."""
    plan = decided(dep(3, annotations=TO_FIRST), owned("new", 3, 1), owned("old", 0))
    assert plan.rollback is not None
    assert plan.rollback.target is None
    assert plan.rollback.event.reason == "DeploymentRollbackTemplateUnchanged"


def test_23_6_4_a_rollback():
    """23.6.4: it names the target, and what comes of the annotations."""
    plan = decided(
        dep(3, annotations=TO_FIRST | {"a": "b"}), with_fields(NEW, annotations={REVISION: "2", "a": "b"}), OLD
    )
    assert plan.rollback is not None
    assert (plan.rollback.target, plan.rollback.event) == (OLD, rolled_back("web", 1))
    assert plan.rollback.annotations == {REVISION: "2"}


def test_events_of_sizes():
    """Each goes with its write."""
    plan = decided(dep(3), owned("new", 2, 2), owned("old", 0, 1))
    assert [update.event for update in plan.updates] == [scaled("new", 2, 3)]
    assert plan.events == ()


def test_writes_under_way():
    """They are handed on: while a size is not observed nothing is added, and it is said why."""
    plan = decided(dep(3), owned("new", 0, 2), owned("old", 0, 1, age_s=9), size_writes=writes(old=(0, 3)))
    assert (told(plan), plan.waiting_for) == ("judged", "ReplicaSet old is to observe its size")


@pytest.mark.parametrize("labels", [{"app": "web"}, {"app": "web", "tier": "x"}, {"app": "api"}, {}])
def test_23_5_17_which_replicasets_match(labels):
    """23.5.17: an orphan is its Deployment's by the selector, whatever other labels it has."""
    plan = decided(dep(3), owned("orphan", labels=labels, owner_refs=()))
    assert bool(plan.adopt) == (WEB.items() <= labels.items())


@pytest.mark.parametrize(
    "selector",
    [
        label_selector(WEB | {HASH_LABEL: "5d"}),
        label_selector(WEB, (Requirement(HASH_LABEL, "DoesNotExist"),)),
        label_selector(WEB, (Requirement(HASH_LABEL, "In", ("5d",)),)),
    ],
)
@pytest.mark.parametrize("strategy", [ROLLING_UPDATE, RECREATE])
def test_a_selector_that_would_not_match_what_is_made(selector, strategy):
    """As in a Deployment that was copied from its ReplicaSet. What was made would be released, and made once more."""
    plan = decided(dep(3, selector=selector, strategy=strategy))
    assert "must not ask for the label" in plan.error
    assert plan.create is None


def test_23_6_2_one_that_is_being_deleted():
    """23.6.2: nothing but the ReplicaSets for the status."""
    assert decided(dep(3, deleting_ms=1), NEW, OLD) == Plan(Rollout(NEW, (OLD,)))
