"""What the status of a DaemonSet says, when it is written and how, and when to look again.

A case is a word a node, as `rollout.parsed` reads it.
"""

import json

import pytest

from oarlock.controllers.daemonset.decide import decide
from oarlock.controllers.daemonset.model import DaemonSetStatus
from oarlock.controllers.daemonset.plan import DaemonSnapshot
from oarlock.controllers.daemonset.status import counts, look_again_ms, status, status_patch
from oarlock.controllers.plan import Plan
from tests.controllers.builders import NOW_MS, S, with_fields
from tests.controllers.daemonset.daemon_builders import DS_UID, NEW, dpod, ds
from tests.controllers.daemonset.rollout import Rollout, lettered, parsed


def counted(words, **fields):
    _, podmap, eligible = parsed(words)
    return counts(ds(**fields), podmap, eligible, NEW, NOW_MS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("", (0, 0, 0, 0, 0, 0, 0), id="26.1.15 no nodes"),
        pytest.param("- -", (2, 0, 0, 0, 0, 0, 2), id="26.1.30 nothing yet"),
        pytest.param("n n", (2, 2, 0, 0, 2, 0, 2), id="26.1.30 created: ready 0"),
        pytest.param("N N", (2, 2, 0, 2, 2, 2, 0), id="26.1.30 ready 2"),
        pytest.param("n n n n n", (5, 5, 0, 0, 5, 0, 5), id="26.1.18 desired and updated reflect the 5 nodes"),
        pytest.param("n " * 10 + "- " * 90, (100, 10, 0, 0, 10, 0, 100), id="26.1.16 10 of 100"),
        pytest.param("O N", (2, 2, 0, 2, 1, 2, 0), id="an old one is not updated"),
        pytest.param("o n", (2, 2, 0, 0, 1, 0, 2), id="updated whether ready or not"),
        pytest.param("!N !- N", (1, 1, 1, 1, 1, 1, 0), id="26.1.36 where none should run: misscheduled, nothing else"),
        pytest.param("!t N", (1, 1, 1, 1, 1, 1, 0), id="also while it is being deleted"),
        pytest.param("?N N", (1, 1, 0, 1, 1, 1, 0), id="on a node that is gone it counts nowhere"),
        pytest.param("f p", (2, 2, 0, 0, 0, 0, 2), id="failed and unassigned ones are current"),
        pytest.param("ON", (1, 1, 0, 1, 0, 1, 0), id="two on a node: the older speaks for it"),
        pytest.param("oN", (1, 1, 0, 0, 0, 0, 1), id="in whatever state"),
        pytest.param("NO", (1, 1, 0, 1, 1, 1, 0), id="the older one may be the updated one"),
        pytest.param("pN", (1, 1, 0, 1, 1, 1, 0), id="an assigned one before an older unassigned one"),
        pytest.param("fN", (1, 1, 0, 0, 0, 0, 1), id="a failed one, too, speaks for the node"),
        pytest.param("tN", (1, 1, 0, 1, 0, 1, 0), id="and one being deleted, for as long as it is ready"),
    ],
)
def test_counts(words, expected):
    """Desired, current, misscheduled, ready, updated, available, unavailable."""
    found = counted(words)
    assert (
        found.desired,
        found.current,
        found.misscheduled,
        found.ready,
        found.updated,
        found.available,
        found.unavailable,
    ) == expected


@pytest.mark.parametrize(
    ("min_ready_seconds", "available"), [(0, 2), (10, 2), (11, 1), (3599, 1), (3600, 1), (3601, 0)]
)
def test_available_after_min_ready_seconds(min_ready_seconds, available):
    """One is ready for ten seconds, one for an hour: the very moment counts."""
    found = counted("s N", min_ready_seconds=min_ready_seconds)
    assert (found.ready, found.available, found.unavailable) == (2, available, 2 - available)


def test_the_other_fields_are_those_the_owner_has():
    """The generation is acknowledged elsewhere, collisions are counted elsewhere."""
    before = DaemonSetStatus(desired=9, observed_generation=3, collision_count=0)
    assert counted("N", generation=4, status=before) == DaemonSetStatus(1, 1, 0, 1, 1, 1, 0, 3, 0)


def test_updated_by_generation():
    """As in the rolling update."""
    podmap = {"n000": [with_fields(lettered("O", "n000")[0], labels={"pod-template-generation": "4"})]}
    owner = ds(template_generation=4)
    assert counts(owner, podmap, {"n000": (True, True)}, NEW, NOW_MS).updated == 1


UP_TO_DATE = DaemonSetStatus(2, 2, 0, 2, 2, 2, 0, 1)


@pytest.mark.parametrize(
    ("current", "generation", "satisfied", "written"),
    [
        pytest.param(UP_TO_DATE, 1, True, None, id="nothing has changed"),
        pytest.param(UP_TO_DATE, 2, True, 2, id="26.1.31 the generation alone"),
        pytest.param(with_fields(UP_TO_DATE, desired=1), 1, True, 1, id="desired"),
        pytest.param(with_fields(UP_TO_DATE, current=1), 1, True, 1, id="current"),
        pytest.param(with_fields(UP_TO_DATE, misscheduled=1), 1, True, 1, id="misscheduled"),
        pytest.param(with_fields(UP_TO_DATE, ready=1), 1, True, 1, id="ready"),
        pytest.param(with_fields(UP_TO_DATE, updated=1), 1, True, 1, id="updated"),
        pytest.param(with_fields(UP_TO_DATE, available=1), 1, True, 1, id="available"),
        pytest.param(with_fields(UP_TO_DATE, unavailable=1), 1, True, 1, id="unavailable"),
        pytest.param(with_fields(UP_TO_DATE, collision_count=3), 1, True, None, id="the collision count is kept"),
        pytest.param(UP_TO_DATE, 2, False, None, id="outstanding: the generation is not acknowledged"),
        pytest.param(
            with_fields(UP_TO_DATE, ready=1), 2, False, 1, id="outstanding: the counts are written with the old"
        ),
    ],
)
@pytest.mark.parametrize("error", ["", "create refused"])
def test_written_only_when_due(current, generation, satisfied, written, error):
    """The generation written, None for no write; the same after a failure. What was written is never due again."""
    owner = ds(status=current, generation=generation)
    known, podmap, _ = parsed("N N")
    pods = tuple(pod for on_node in podmap.values() for pod in on_node)
    plan = decide(DaemonSnapshot(owner, pods, known, NEW, satisfied=satisfied), NOW_MS)
    new = status(owner, plan, error, NOW_MS, True)
    if written is None:
        assert new is None
    else:
        expected = with_fields(UP_TO_DATE, observed_generation=written, collision_count=current.collision_count)
        assert new == expected
        assert status(with_fields(owner, status=new), plan, error, NOW_MS + S, False) is None


def test_first_status_of_a_set_without_nodes():
    """All counters are 0 as they were: it is the generation that is written."""
    owner = ds(status=DaemonSetStatus())
    assert status(owner, decide(DaemonSnapshot(owner, (), {}, NEW), NOW_MS), "", NOW_MS, True) == DaemonSetStatus(
        observed_generation=1
    )


@pytest.mark.parametrize(
    "plan", [Plan(invalid="being deleted", counts=UP_TO_DATE), Plan(invalid="the selector is empty"), Plan()]
)
def test_no_status_where_nothing_is_done(plan):
    """The turn ended before anything was counted."""
    assert status(ds(), plan, "", NOW_MS, True) is None


def test_status_of_a_rollout():
    """26.5.6: updated rises with every pod replaced; kubectl waits for updated, then available, to reach desired."""
    rollout = Rollout(3, max_unavailable=1)
    rollout.play("+3 R r")
    seen = []
    for _ in range(6):
        found = rollout.turn().counts
        seen.append((found.updated, found.available))
        rollout.ready()
    assert seen == [(0, 3), (0, 2), (1, 3), (1, 2), (2, 3), (2, 2)]
    assert rollout.turn().counts == DaemonSetStatus(3, 3, 0, 3, 3, 3, 0, 1)


def patch_of(owner, new):
    return json.loads(status_patch(owner, new, "77"))


def test_patch_carries_its_preconditions():
    """Refused if the owner is another or has changed since; nothing but the status is sent."""
    owner = ds()
    patch = patch_of(owner, DaemonSetStatus(5, 4, 1, 3, 2, 3, 2, 7, 1))
    assert patch == {
        "metadata": {"uid": DS_UID, "resourceVersion": "77"},
        "status": {
            "desiredNumberScheduled": 5,
            "currentNumberScheduled": 4,
            "numberMisscheduled": 1,
            "numberReady": 3,
            "updatedNumberScheduled": 2,
            "numberAvailable": 3,
            "numberUnavailable": 2,
            "observedGeneration": 7,
        },
    }


def merged(target, patch):
    """RFC 7396 over plain dicts."""
    left = {key: value for key, value in target.items() if key not in patch}
    return left | {key: value for key, value in patch.items() if value is not None}


ZEROS = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}


@pytest.mark.parametrize(
    ("stored", "new", "expected"),
    [
        pytest.param({}, DaemonSetStatus(), ZEROS, id="the four that have no omitempty are written as 0"),
        pytest.param(
            {"updatedNumberScheduled": 2, "numberAvailable": 2, "numberUnavailable": 1, "observedGeneration": 4},
            DaemonSetStatus(),
            ZEROS,
            id="the others go when they are 0",
        ),
        pytest.param(
            {"collisionCount": 2, "conditions": [{"type": "T", "status": "True"}]},
            DaemonSetStatus(1, 1, 0, 1, 1, 1, 0, 4, 2),
            {
                "currentNumberScheduled": 1,
                "numberMisscheduled": 0,
                "desiredNumberScheduled": 1,
                "numberReady": 1,
                "updatedNumberScheduled": 1,
                "numberAvailable": 1,
                "observedGeneration": 4,
                "collisionCount": 2,
                "conditions": [{"type": "T", "status": "True"}],
            },
            id="26.5.10 what is not ours stays",
        ),
    ],
)
def test_patch_leaves_what_a_put_would(stored, new, expected):
    """The stored status is that of a typed client's PUT."""
    assert merged(stored, patch_of(ds(), new)["status"]) == expected


@pytest.mark.parametrize(
    ("min_ready_seconds", "words", "later_ms", "delay_ms"),
    [
        pytest.param(0, "s n", 0, None, id="no minReadySeconds"),
        pytest.param(15, "N O", 0, None, id="all are available"),
        pytest.param(15, "n -", 0, None, id="not ready: its event will tell"),
        pytest.param(15, "s N", 0, 5 * S, id="one to wait for"),
        pytest.param(15, "s N", 2 * S, 3 * S, id="two seconds later"),
        pytest.param(15, "s N", 9 * S, 0, id="past: at once"),
        pytest.param(15, "Os N", 0, 5 * S, id="a new one beside an old one that is available: in no counter"),
        pytest.param(15, "!s", 0, 5 * S, id="where none should run: it may be one to spare"),
    ],
)
def test_look_again(min_ready_seconds, words, later_ms, delay_ms):
    """When the next pod becomes available."""
    known, podmap, eligible = parsed(words)
    owner = ds(min_ready_seconds=min_ready_seconds)
    pods = tuple(pod for on_node in podmap.values() for pod in on_node)
    found = counts(owner, podmap, eligible, NEW, NOW_MS)
    assert look_again_ms(owner, pods, found, NOW_MS, NOW_MS + later_ms) == delay_ms
    if not later_ms:
        plan = decide(DaemonSnapshot(owner, pods, known, NEW), NOW_MS)
        assert plan.again_ms == delay_ms


def test_look_again_where_the_ready_time_is_unknown():
    """Nothing says when, so after the whole time."""
    owner = ds(min_ready_seconds=15)
    pods = [dpod("n000", ready_since_ms=0)]
    found = counts(owner, {"n000": pods}, {"n000": (True, True)}, NEW, NOW_MS)
    assert (found.ready, found.available) == (1, 0)
    assert look_again_ms(owner, pods, found, NOW_MS, NOW_MS) == 15 * S
