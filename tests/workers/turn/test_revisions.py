"""The history of a template carried out, step by step. The words are those of ``revision_script``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from oarlock.broker.values.objects import Cached
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision
from oarlock.controllers.objects import codec
from oarlock.workers.turn.revisions import RELABELS_MAX, RESOURCE, construct, prune
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.controllers.builders import OTHER_UID, UID, WEB, with_fields
from tests.controllers.history.history_builders import daemon_pod, daemons, hash_for, revision
from tests.workers.turn.revision_script import CACHED_RV, CONTROLLER, claimed, history, play

V1, V2, V3 = revision(1, "v1"), revision(2, "v2"), revision(3, "v3")
TWIN = revision(4, "v1", "twin", WEB | {HASH_LABEL: "twin"})


@pytest.mark.parametrize("needs", ["", "pods=90", "daemonsets=91"])
def test_nothing_to_do(needs: str) -> None:
    """26.2.7: an unchanged template costs no step at all, whatever of ours is still to be read."""
    history(daemons("v3"), [V1, V2, V3], "current v3, old v1@7, old v2@7", needs=needs)


def test_the_first_revision() -> None:
    """The owner is read first: for its annotations, and because its spec is about to be written down."""
    history(
        daemons("v1"),
        [],
        """
        read daemonsets web -> alive
        send create v1#1    -> 201@20
        current v1: need controllerrevisions 20
        """,
    )


def test_another_template() -> None:
    history(
        daemons("v3"),
        [V1, V2],
        """
        read daemonsets web -> alive
        send create v3#3    -> 201@20
        current v3, old v1@7, old v2@7: need controllerrevisions 20
        """,
    )


def test_a_rollback_raises_the_number() -> None:
    """No new revision, and the hash that the pods of that template bear already."""
    history(
        daemons("v1"),
        [V1, V2, V3],
        """
        send number v1@7 4 -> 200@20
        current v1, old v2@7, old v3@7: need controllerrevisions 20
        """,
    )


@pytest.mark.parametrize(
    ("live", "why"),
    [
        pytest.param("alive/gen2", "the cache has generation 1, the API 2", id="changed since"),
        pytest.param("deleting", "default/web has just been deleted at 2025-06-15T15:06:40Z", id="being deleted"),
        pytest.param("500", "the server answered 500", id="not told"),
        pytest.param("lost", "no answer within 4 s", id="no answer"),
        pytest.param("junk", "not a DaemonSet: JSON is malformed: invalid character (byte 0)", id="unreadable"),
    ],
)
def test_no_revision_of_what_is_not_the_owner(live: str, why: str) -> None:
    history(
        daemons("v1"),
        [],
        f"""
        read daemonsets web -> {live}
        fails (revision of default/web: {why})
        """,
    )


@pytest.mark.parametrize("live", ["404", "recreated"])
def test_no_revision_of_an_owner_that_has_gone(live: str) -> None:
    """Which is no failure: the cache has yet to hear of it, and what it then hears wakes the key."""
    history(
        daemons("v1"),
        [],
        f"""
        read daemonsets web -> {live}
        current v1, undecided
        """,
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param("500", "the server answered 500", id="unknown"),
        pytest.param("lost", "no answer within 4 s", id="no answer"),
        pytest.param("late", "its deadline passed before it could be sent", id="too late"),
        pytest.param("quota", "exceeded quota: pods=2", id="forbidden for another reason"),
        pytest.param("422", "Invalid", id="refused"),
    ],
)
def test_a_create_that_is_not_known_to_have_succeeded(answer: str, why: str) -> None:
    """The turn ends before anything is done about pods: their label would be that of nothing."""
    history(
        daemons("v1"),
        [],
        f"""
        read daemonsets web -> alive
        send create v1#1    -> {answer}
        fails (create ControllerRevision default/v1: {why})
        """,
    )


@pytest.mark.parametrize(
    ("known", "number", "old"),
    [pytest.param([], 1, "", id="none is there"), pytest.param([V2], 3, ", old v2@7", id="another template's is")],
)
def test_a_namespace_that_ends_takes_none(known: list[ControllerRevision], number: int, old: str) -> None:
    """Which is no failure: whatever is there goes, and nothing is done about the pods until then."""
    history(
        daemons("v1"),
        known,
        f"""
        read daemonsets web     -> alive
        send create v1#{number} -> terminating
        current v1{old}, undecided
        """,
    )


def test_429_is_waited_for() -> None:
    history(
        daemons("v1"),
        [],
        """
        read daemonsets web -> alive
        send create v1#1    -> 429/7
        fails (create ControllerRevision default/v1: the server answered 429) in 7000 ms
        """,
    )


@pytest.mark.parametrize(
    ("found", "end"),
    [
        pytest.param("v1@19", "current v1: need controllerrevisions 19", id="ours, not in the cache yet"),
        pytest.param("v1?@19", "current v1, again in 10000 ms", id="another owner's: upstream does not ask whose"),
        pytest.param("v1!@19", "current the name of v1: need controllerrevisions 19", id="without a label"),
    ],
)
def test_made_already(found: str, end: str) -> None:
    """By a predecessor that died before it said so, or by a second fleet: the same content is as good."""
    history(
        daemons("v1"),
        [],
        f"""
        read daemonsets web             -> alive
        send create v1#1                -> exists
        read controllerrevisions v1     -> {found}
        {end}
        """,
    )


@pytest.mark.parametrize(
    ("count", "raised", "name"),
    [pytest.param(None, 1, "v1", id="26.4.7 the first"), pytest.param(1, 2, "v1~1", id="26.4.7 another one")],
)
def test_a_collision(count: int | None, raised: int, name: str) -> None:
    """The name is borne by another template: the count goes up, the turn fails, the next one has another name."""
    why = f"ControllerRevision default/{name} holds another template: the collision count is {raised} now"
    history(
        daemons("v1", count),
        [],
        f"""
        read daemonsets web             -> alive
        send create {name}#1            -> exists
        read controllerrevisions {name} -> v2@19
        send collisions {raised}        -> 200@31
        fails ({why}): need daemonsets 31
        """,
    )
    history(
        daemons("v1", raised),
        [],
        f"""
        read daemonsets web        -> alive
        send create v1~{raised}#1  -> 201@33
        current v1~{raised}: need controllerrevisions 33
        """,
    )


def test_the_live_count_is_used() -> None:
    """The cache may not have our own raise yet: the same collision is not counted twice."""
    history(
        daemons("v1"),
        [],
        """
        read daemonsets web -> alive/count1
        send create v1~1#1  -> 201@33
        current v1~1: need controllerrevisions 33
        """,
        needs="daemonsets=31",
    )
    history(
        daemons("v1"),
        [],
        """
        read daemonsets web           -> alive/count1
        send create v1~1#1            -> exists
        read controllerrevisions v1~1 -> v2@19
        send collisions 2             -> conflict
        fails (ControllerRevision default/v1~1 holds another template, raising the collision count to 2: Conflict)
        """,
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param("conflict", "Conflict", id="the owner has changed since: perhaps its count"),
        pytest.param("404", "NotFound", id="the owner has gone"),
        pytest.param("lost", "no answer within 4 s", id="no answer"),
    ],
)
def test_a_collision_that_cannot_be_counted(answer: str, why: str) -> None:
    history(
        daemons("v1"),
        [],
        f"""
        read daemonsets web         -> alive
        send create v1#1            -> exists
        read controllerrevisions v1 -> v2@19
        send collisions 1           -> {answer}
        fails (ControllerRevision default/v1 holds another template, raising the collision count to 1: {why})
        """,
    )


@pytest.mark.parametrize(
    ("look", "why"),
    [
        pytest.param("404", ", reading it: NotFound", id="gone again"),
        pytest.param("500", ", reading it: the server answered 500", id="not told"),
        pytest.param("junk", ": not a ControllerRevision: JSON is malformed: invalid character (byte 0)", id="junk"),
    ],
)
def test_a_name_taken_by_what_cannot_be_read(look: str, why: str) -> None:
    history(
        daemons("v1"),
        [],
        f"""
        read daemonsets web         -> alive
        send create v1#1            -> exists
        read controllerrevisions v1 -> {look}
        fails (ControllerRevision default/v1 exists already{why})
        """,
    )


def test_claims() -> None:
    """26.2.9: orphans are adopted after a live look at the owner, what is not selected is released."""
    orphan, lost = with_fields(V1, owner_refs=()), with_fields(V2, labels={HASH_LABEL: "x"})
    foreign = with_fields(V3, namespace="other", owner_refs=())
    history(
        daemons("v1"),
        [orphan, lost, foreign],
        """
        read daemonsets web      -> alive
        send release v2 adopt v1 -> 200@20 200@21
        current v1: need controllerrevisions 20 21
        """,
    )


def test_an_adopted_one_has_another_version() -> None:
    """What is done to it next names the version that the adoption left."""
    history(
        daemons("v1"),
        [with_fields(V1, owner_refs=(), labels=dict(WEB)), V2],
        """
        read daemonsets web -> alive
        send adopt v1       -> 200@20
        send label v1@20    -> 200@21
        send number v1@21 3 -> 200@22
        current the name of v1, old v2@7: need controllerrevisions 20 21 22
        """,
    )


def test_an_orphan_that_has_gone_is_made() -> None:
    history(
        daemons("v1"),
        [with_fields(V1, owner_refs=())],
        """
        read daemonsets web -> alive
        send adopt v1       -> 404
        read daemonsets web -> alive
        send create v1#1    -> 201@20
        current v1: need controllerrevisions 20
        """,
    )


@pytest.mark.parametrize(
    ("live", "why"), [("recreated", f"original DaemonSet default/web is gone: got uid {OTHER_UID}, wanted {UID}")]
)
def test_the_gate(live: str, why: str) -> None:
    history(
        daemons("v1"),
        [with_fields(V1, owner_refs=())],
        f"""
        read daemonsets web -> {live}
        fails (can't adopt ControllerRevision default/v1 ({V1.uid.replace(V1.name, "v1")}): {why})
        """,
    )


def test_an_unlabelled_old_one_is_labelled_with_its_name() -> None:
    history(
        daemons("v2"),
        [with_fields(V1, labels=dict(WEB)), V2],
        """
        send label v1@7 -> 200@20
        current v2, old v1@20: need controllerrevisions 20
        """,
    )


@pytest.mark.parametrize(
    ("answer", "why"), [("conflict", "Conflict"), ("404", "NotFound"), ("lost", "no answer within 4 s")]
)
def test_a_change_that_fails_ends_the_turn(answer: str, why: str) -> None:
    """What succeeded beside it has to be read all the same."""
    history(
        daemons("v3"),
        [with_fields(V1, labels=dict(WEB)), with_fields(V2, labels=dict(WEB)), V3],
        f"""
        send label v1@7 label v2@7 -> {answer} 200@20
        fails (label ControllerRevision default/v1: {why}): need controllerrevisions 20
        """,
    )
    history(
        daemons("v1"),
        [V1, V2],
        f"""
        send number v1@7 3 -> {answer}
        fails (renumber ControllerRevision default/v1: {why})
        """,
    )


OLD_POD, NEW_POD = daemon_pod("p1", hash_for("v1")), daemon_pod("p2", "twin")
OF_V2, BARE_POD = daemon_pod("p3", hash_for("v2")), daemon_pod("p4", "", labels=dict(WEB))
ORPHAN_POD = daemon_pod("p5", hash_for("v1"), owner_refs=())
OTHER_OLD_POD = daemon_pod("p6", hash_for("v1"))


def test_duplicates_go_after_their_pods_were_labelled() -> None:
    """26.4.8: the highest number stays. Only pods of the duplicate get its label: others are of other templates, and
    are yet to be replaced.
    """
    history(
        daemons("v1"),
        [V1, TWIN, V2],
        """
        reserve 2                         -> all
        send prepaid p1=twin p6=twin      -> 200@20 404
        send delete v1@7                  -> 200
        current twin, old v2@7, undecided: need pods 20
        """,
        *(OLD_POD, NEW_POD, OF_V2, BARE_POD, ORPHAN_POD, OTHER_OLD_POD),
    )


def test_duplicates_then_number() -> None:
    history(
        daemons("v1"),
        [V1, TWIN, with_fields(V2, revision=8)],
        """
        send delete v1@7     -> 404
        send number twin@7 9 -> 200@22
        current twin, old v2@7: need controllerrevisions 22
        """,
        NEW_POD,
    )


@pytest.mark.parametrize(("answer", "why"), [("conflict", "Conflict"), ("500", "the server answered 500")])
def test_no_duplicate_goes_before_every_pod_is_labelled(answer: str, why: str) -> None:
    history(
        daemons("v1"),
        [V1, TWIN],
        f"""
        reserve 2                    -> all
        send prepaid p1=twin p6=twin -> {answer} 200@21
        fails (label Pod default/p1: {why}): need pods 21
        """,
        *(OLD_POD, OTHER_OLD_POD),
    )


def test_labels_within_the_rate_limit() -> None:
    history(
        daemons("v1"),
        [V1, TWIN],
        """
        reserve 2            -> 1 wait 250
        send prepaid p1=twin -> 200@20
        fails (1 pods of default/web are yet to be labelled twin) in 250 ms: need pods 20
        """,
        *(OLD_POD, OTHER_OLD_POD),
    )
    history(
        daemons("v1"),
        [V1, TWIN],
        """
        reserve 1            -> 0 wait 250
        fails (1 pods of default/web are yet to be labelled twin) in 250 ms
        """,
        OLD_POD,
    )


def test_labels_are_sent_in_bursts() -> None:
    pods = [daemon_pod(f"p{n}", hash_for("v1")) for n in range(RELABELS_MAX + 1)]
    sends = " ".join(f"{pod.name}=twin" for pod in pods[:RELABELS_MAX])
    history(
        daemons("v1"),
        [V1, TWIN],
        f"""
        reserve {RELABELS_MAX} -> all
        send prepaid {sends}   -> {" ".join(["404"] * RELABELS_MAX)}
        fails (1 pods of default/web are yet to be labelled twin)
        """,
        *pods,
    )


def test_labels_are_not_judged_by_pods_that_were_written_since() -> None:
    """Nothing is deleted either: pods that bear the label of a duplicate may not be in the cache yet."""
    history(daemons("v1"), [V1, TWIN], "current twin", OLD_POD, needs="pods=90")


@pytest.mark.parametrize(("answer", "why"), [("conflict", "Conflict"), ("lost", "no answer within 4 s")])
def test_a_duplicate_that_stays(answer: str, why: str) -> None:
    history(
        daemons("v1"),
        [V1, TWIN],
        f"""
        send delete v1@7 -> {answer}
        fails (delete duplicate ControllerRevision default/v1: {why})
        """,
    )


@pytest.mark.parametrize(
    ("image", "revisions", "end"),
    [
        pytest.param("v1", [], "current v1", id="to be made: the hash is computed"),
        pytest.param("v2", [V1], "current v2, old v1@7", id="another template"),
        pytest.param("v1", [V1, V2], "current v1, old v2@7", id="to be numbered"),
        pytest.param("v1", [V1, TWIN], "current twin", id="a duplicate"),
        pytest.param("v1", [with_fields(V1, owner_refs=())], "current v1", id="an orphan"),
        pytest.param("v1", [with_fields(V1, labels=dict(WEB))], "current the name of v1", id="without a label"),
    ],
)
def test_a_cache_that_has_not_passed_our_writes(image: str, revisions: list[ControllerRevision], end: str) -> None:
    """Nothing is written, and the label of pods that are made again is right all the same."""
    history(daemons(image), revisions, end, OLD_POD, needs="pods=4 controllerrevisions=90")


@pytest.mark.parametrize(
    ("live", "end"),
    [
        ("alive/count1", "current v1~1"),
        ("alive", "current v1"),
        ("404", "current v1"),
        ("recreated", "current v1"),
        ("500", "fails (revision of default/web: the server answered 500)"),
    ],
)
def test_nor_the_collision_count(live: str, end: str) -> None:
    history(
        daemons("v1"),
        [],
        f"""
        read daemonsets web -> {live}
        {end}
        """,
        needs="controllerrevisions=90 daemonsets=91",
    )


@pytest.mark.parametrize("fields", [{"deleting_ms": 1}, {"selector": None}])
def test_an_owner_that_is_left_alone(fields: dict[str, Any]) -> None:
    for revisions in ([], [V1, TWIN], [with_fields(V1, owner_refs=())]):
        owner = daemons("v1", **fields)
        cached = [Cached(CACHED_RV, each.uid, codec.encode(each)) for each in revisions]
        claim = claimed(owner)._replace(others={RESOURCE: cached})
        running = construct(owner, (OLD_POD,), CONTROLLER, claim, TurnOutcome(claim))
        with pytest.raises(StopIteration):
            next(running)


def pruned(revisions: Sequence[ControllerRevision], transcript: str) -> None:
    owner = daemons("v4")
    outcome = TurnOutcome(claimed(owner))
    versions = {each.uid: f"{each.revision}0" for each in revisions}
    play(prune(tuple(revisions), versions, owner, outcome), owner, revisions, outcome, transcript)


@pytest.mark.parametrize(
    ("revisions", "transcript"),
    [
        pytest.param([], "done", id="nothing"),
        pytest.param(
            [V1, V2, V3],
            """
            reserve 3                                        -> all
            send prepaid delete v1@10 delete v2@20 delete v3@30 -> 200 404 200@50
            done: need controllerrevisions 50
            """,
            id="gone already is no error",
        ),
        pytest.param(
            [V1, V2],
            """
            reserve 2                               -> all
            send prepaid delete v1@10 delete v2@20  -> 500 conflict
            done, retry, error clean up revisions: default/v1: the server answered 500
            """,
            id="the first failure is told",
        ),
        pytest.param(
            [V1, V2],
            """
            reserve 2                  -> 1 wait 250
            send prepaid delete v1@10  -> 200
            done, again in 250 ms
            """,
            id="as many as the rate limit has",
        ),
        pytest.param(
            [V1],
            """
            reserve 1 -> 0 wait 250
            done, again in 250 ms
            """,
            id="none for now",
        ),
        pytest.param(
            [V1],
            """
            reserve 1                  -> all
            send prepaid delete v1@10  -> late
            done, retry
            """,
            id="too late is no error",
        ),
    ],
)
def test_prune(revisions: list[ControllerRevision], transcript: str) -> None:
    """Each with its UID and the version it was judged by."""
    pruned(revisions, transcript)
