"""Writes that nobody has answered stop nothing: what a turn makes of them, and what ends them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from oarlock.controllers.objects.model import Condition, ReplicaSet, ReplicaSetStatus
from oarlock.controllers.objects.selector import label_selector
from tests.controllers.builders import OTHER_UID, WEB_SLOTS, pods, rs, with_fields
from tests.workers.turn.turn_answers import LIST_POD_RV
from tests.workers.turn.turn_script import claimed, plays

SLOW = "no answer within 4 s"
AS_IS = ReplicaSetStatus(1, 1, 1, 1, observed_generation=1)
"""The status of an owner with one pod that runs: nothing new to be said."""
TWO = ReplicaSetStatus(2, 2, 2, 2, observed_generation=1)


def wants(replicas: int, status: ReplicaSetStatus = AS_IS, **fields: object) -> ReplicaSet:
    return rs(replicas, status=status, **fields)


def slots_by_name(slots: Iterable[int]) -> list[int]:
    return sorted(slots, key=WEB_SLOTS.name)


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        pytest.param("201@20", "ok: drop create 5; need pods 20", id="created now"),
        pytest.param(
            "exists",
            "read pods 5 -> ours@20\nok in 0 ms: drop create 5; need pods 20",
            id="created then: AlreadyExists",
        ),
        pytest.param("exists", "read pods 5 -> 404\nok in 0 ms: drop create 5", id="created then, gone since"),
        pytest.param(
            "exists",
            "read pods 5 -> foreign@20\nok in 0 ms: drop create 5; need pods 20; blocked 5=stranger",
            id="foreign: the name is blocked",
        ),
        pytest.param("exists", "read pods 5 -> lost\nretry", id="exists, but whose"),
        pytest.param("terminating", "ok: drop create 5", id="namespace terminating"),
        pytest.param("late", "retry: drop create 5", id="too late: the first may land, so its name stays reserved"),
    ],
)
def test_a_create_is_sent_again(answer: str, then: str) -> None:
    """It is announced anew. Any answer ends the entry; that the name is reserved only time and a look end."""
    plays(
        claimed(wants(2), pods("R"), "create 5", "reserved 5"),
        f"""
        reserve 1         -> all
        announce create 5 -> recorded
        send create 5     -> {answer}
        {then}
        """,
    )


def test_what_is_sent_again_goes_last() -> None:
    """A create that fails again ends the slow start, and would do so in every turn: the others are sent before."""
    plays(
        claimed(wants(3), pods("R"), "create 5", "reserved 5"),
        """
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> 201@20
        reserve 1         -> all
        announce create 5 -> recorded
        send create 5     -> 500
        send status 1, full 1, ready 1, available 1, FailedCreate (the server answered 500) @5 -> 200@30
        fails (the server answered 500), retry: drop create 1; need pods 20; need replicasets 30; \
said create pods/5: the server answered 500
        """,
    )


@pytest.mark.parametrize(
    ("answer", "why", "wait", "changes"),
    [
        pytest.param(
            "quota", "exceeded quota: pods=2", "", "drop create 5; passed 5; ", id="refused: the name stays reserved"
        ),
        pytest.param("429/7", "the server answered 429", " in 7000 ms", "drop create 5; ", id="429"),
        pytest.param("unsent", "cannot connect", "", "drop create 5; ", id="not connected"),
        pytest.param("500", "the server answered 500", "", "", id="500: stays open"),
        pytest.param("lost", SLOW, "", "", id="no answer: stays open"),
    ],
)
def test_a_create_fails_again(answer: str, why: str, wait: str, changes: str) -> None:
    said = "" if changes else f"; said create pods/5: {why}"
    plays(
        claimed(wants(2), pods("R"), "create 5", "reserved 5"),
        f"""
        reserve 1         -> all
        announce create 5 -> recorded
        send create 5     -> {answer}
        send status 1, full 1, ready 1, available 1, FailedCreate ({why}) @5 -> 200@30
        fails ({why}), retry{wait}: {changes}need replicasets 30{said}
        """,
    )


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        pytest.param("200@20", "ok: answered 0@7", id="deleted now"),
        pytest.param("404", "ok: answered 0@7", id="deleted then: until the cache shows it"),
        pytest.param("conflict", "read pods 0 -> another@20\nok: answered 0@7", id="deleted then, the name borne anew"),
        pytest.param(
            "conflict",
            "read pods 0 -> ours@20\nretry: drop delete 0; need pods 20",
            id="changed since: neither of the two requests can take effect",
        ),
        pytest.param("conflict", "read pods 0 -> ours@7\nretry", id="unchanged: refused by others, the first may land"),
        pytest.param("conflict", "read pods 0 -> lost\nretry", id="conflict, but why"),
        pytest.param("late", "retry", id="too late: says nothing of the first"),
    ],
)
def test_a_delete_is_sent_again(answer: str, then: str) -> None:
    """With the UID and the version it was announced with then."""
    plays(
        claimed(wants(1, TWO), pods("RR"), "delete 0@7"),
        f"""
        reserve 1           -> all
        announce delete 0@7 -> recorded
        send delete 0@7     -> {answer}
        {then}
        """,
    )


@pytest.mark.parametrize(
    ("answer", "why", "wait"),
    [
        pytest.param("403", "Forbidden", "", id="refused: says nothing of the first"),
        pytest.param("500", "the server answered 500", "", id="500"),
        pytest.param("lost", SLOW, "", id="no answer"),
        pytest.param("429", "the server answered 429", " in 1000 ms", id="429"),
        pytest.param("unsent", "cannot connect", "", id="not connected"),
    ],
)
def test_a_delete_that_fails_again_stays_open(answer: str, why: str, wait: str) -> None:
    said = f"; said delete pods/0: {why}" if answer in ("500", "lost") else ""
    plays(
        claimed(wants(1, TWO), pods("RR"), "delete 0@7"),
        f"""
        reserve 1           -> all
        announce delete 0@7 -> recorded
        send delete 0@7     -> {answer}
        send status 2, full 2, ready 2, available 2, FailedDelete (unable to delete pods: {why}) @5 -> 200@30
        fails (unable to delete pods: {why}), retry{wait}: need replicasets 30{said}
        """,
    )


@pytest.mark.parametrize(
    ("replicas", "letters", "record", "steps"),
    [
        pytest.param(
            0, "RR", ("create 5, 6",), "delete 0@7 1@7 -> 200@20 200@21", id="a create may come: all go at once"
        ),
        pytest.param(1, "RR", ("create 5, 6",), "delete 0@7 -> 200@20", id="the one too many goes"),
        pytest.param(0, "RR", ("delete 0@7, 6",), "delete 1@7 -> 200@20", id="one may have gone: the other goes"),
        pytest.param(4, "RR", ("create 5, 6",), "create 2 -> 201@20", id="one may come, one more is missing"),
        pytest.param(4, "RR", ("passed 2",), "create 3 4 -> 201@20 201@21", id="one is passed over"),
    ],
)
def test_what_is_open_stops_nothing(replicas: int, letters: str, record: tuple[str, ...], steps: str) -> None:
    """One that was sent too often is left alone until a look settles it; the rest of the owner goes on."""
    writes, _, answers = steps.partition(" -> ")
    count = len(answers.split())
    lines = [f"reserve {count} -> all", f"announce {writes} -> recorded", f"send {writes} -> {answers}"]
    if "create 3 4" in writes:
        lines = ["reserve 1 -> all", "announce create 3 4 -> recorded", "send create 3 -> 201@20"]
        lines += ["reserve 1 -> all", "send create 4 -> 201@21"]
    ended = {
        "delete 0@7 1@7": "answered 0@7; answered 1@7",
        "delete 0@7": "answered 0@7",
        "delete 1@7": "answered 1@7",
        "create 2": "drop create 2; need pods 20",
        "create 3 4": "drop create 3; need pods 20; drop create 4; need pods 21",
    }[writes]
    again = " in 60000 ms" if record[0].startswith("passed") else ""
    plays(claimed(wants(replicas, TWO), pods(letters), *record), "\n".join([*lines, f"ok{again}: {ended}"]))


@pytest.mark.parametrize(
    ("replicas", "letters", "record"),
    [
        pytest.param(1, "R", "create 5", id="a create that is not wanted any more"),
        pytest.param(2, "RR", "delete 0@7", id="a delete that is not wanted any more"),
        pytest.param(2, "R", "create 5, 6", id="a create that was sent too often"),
        pytest.param(1, "RR", "delete 0@7, 6", id="a delete that was sent too often"),
    ],
)
def test_it_is_not_sent_again(replicas: int, letters: str, record: str) -> None:
    """Nothing else is done in its place either: it may still take effect."""
    plays(claimed(wants(replicas, TWO if len(letters) == 2 else AS_IS), pods(letters), record), "ok")


def test_not_too_soon() -> None:
    """The first time at once, then after half a second, one, two and four. It was sent 3 s ago."""
    status = with_fields(AS_IS)
    plays(claimed(wants(2, status), pods("R"), "create 5, 5"), "ok in 1000 ms")
    plays(
        claimed(wants(2, status), pods("R"), "create 5, 4"),
        """
        reserve 1         -> all
        announce create 5 -> recorded
        send create 5     -> 201@20
        ok: drop create 5; need pods 20
        """,
    )


@pytest.mark.parametrize(
    ("letters", "record", "changes"),
    [
        pytest.param("RR", "create 1", "drop create 1", id="a create: the name is borne"),
        pytest.param("Rt", "create 1", "drop create 1", id="a create: its bearer is ending"),
        pytest.param("Ro", "create 1", "drop create 1", id="a create: an orphan bears it"),
        pytest.param("Rt", "delete 1@7", "drop delete 1", id="a delete: the pod is ending"),
        pytest.param("R", "delete 1@7", "drop delete 1", id="a delete: the pod has gone"),
        pytest.param("RR", "delete 1@6", "drop delete 1", id="a delete: the pod has changed since"),
    ],
)
def test_the_cache_answers(letters: str, record: str, changes: str) -> None:
    """Of a create only the entry ends: its name stays reserved."""
    owner = with_fields(wants(9, TWO if letters == "RR" else AS_IS), deleting_ms=1)
    assert plays(claimed(owner, pods(letters), record, "reserved 1"), f"ok: {changes}")


@pytest.mark.parametrize(
    ("replicas", "letters"), [pytest.param(2, "RRR", id="it has changed"), pytest.param(1, "RtR", id="it is ending")]
)
def test_what_the_cache_has_ended_counts_no_more(replicas: int, letters: str) -> None:
    """In the turn that finds it out: one pod is too many, and nothing that is under way takes one away."""
    three = ReplicaSetStatus(3, 3, 3, 3, observed_generation=1)
    plays(
        claimed(wants(replicas, three), pods(letters), "delete 1@6"),
        """
        reserve 1 -> all
        announce delete 0@7 -> recorded
        send delete 0@7 -> 200@20
        ok: drop delete 1; answered 0@7
        """,
    )


def test_a_cache_that_is_behind_answers_nothing() -> None:
    """The delete was decided on a live list: that the cache, at 10, lacks the pod of 12 is no news of its end."""
    plays(claimed(wants(1), pods("R"), "delete 1@12"), "ok")


@pytest.mark.parametrize(
    ("record", "look", "end"),
    [
        pytest.param("create 5, over", "404", "ok: drop create 5; drop reserved 5", id="nobody bears it"),
        pytest.param("reserved 5, over", "404", "ok: drop create 5; drop reserved 5", id="reserved only"),
        pytest.param("reserved 5, over", "ours@9", "ok: drop create 5; drop reserved 5", id="borne, and read"),
        pytest.param(
            "create 5, over",
            "ours@20",
            "ok in 1000 ms: drop create 5; drop reserved 5; need pods 20",
            id="borne, not read yet",
        ),
        pytest.param("create 5, over", "lost", "retry", id="not told"),
        pytest.param("create 5, over", "500", "retry", id="told nothing"),
        pytest.param("create 5, over", "junk", "retry", id="unreadable"),
        pytest.param(
            "create 5, 6, over",
            "404",
            "ok: drop create 5; drop reserved 5; passed 5 for 300000 ms",
            id="sent as often as may be: others are taken for five minutes",
        ),
        pytest.param("delete 0@7, over", "404", "ok in 1000 ms: answered 0@7", id="a delete: gone"),
        pytest.param(
            "delete 0@7, over", "another@20", "ok in 1000 ms: answered 0@7", id="a delete: the name is another's"
        ),
        pytest.param("delete 0@7, over", "ours@7", "ok: drop delete 0", id="a delete: nothing happened"),
        pytest.param(
            "delete 0@7, over", "ours@20", "ok in 1000 ms: drop delete 0; need pods 20", id="a delete: the pod changed"
        ),
        pytest.param("delete 0@7, over", "lost", "retry", id="a delete: not told"),
    ],
)
def test_time_and_a_look_end_it(record: str, look: str, end: str) -> None:
    """D after it was sent last nothing is under way any more, so what the API shows is how it ended."""
    name = record.split()[1].partition("@")[0].rstrip(",")
    passed = " in 300000 ms" if "passed" in end else ""
    end = end.replace("ok:", f"ok{passed}:")
    owner = with_fields(wants(1), deleting_ms=1)
    plays(claimed(owner, pods("R"), record), f"read pods {name} -> {look}\n{end}")


def test_what_a_look_has_freed_is_used_in_the_same_turn() -> None:
    """And the entry of the new create is not dropped with that of the old one."""
    plays(
        claimed(wants(2), pods("R"), "create 1, over", "reserved 1, over"),
        """
        read pods 1       -> 404
        reserve 1         -> all
        announce create 1 -> recorded
        send create 1     -> unsent
        send status 1, full 1, ready 1, available 1, FailedCreate (cannot connect) @5 -> 200@30
        fails (cannot connect), retry: drop reserved 1; drop create 1; need replicasets 30
        """,
    )


@pytest.mark.parametrize(
    ("selected", "looks", "borne"),
    [
        pytest.param(31, [], 31, id="all are borne by pods that the owner selects"),
        pytest.param(29, ["read pods 30 29 -> 404 404"], 29, id="a few are not: each is read"),
        pytest.param(29, ["read pods 30 29 -> 404 orphan@40"], 30, id="one is borne by a pod that it does not select"),
        pytest.param(10, ["list pods -> 50"], 10, id="many are not: the whole namespace is listed"),
        pytest.param(10, [f"list pods -> 50 {'R' * 30}"], 30, id="and most are borne by pods that it does not select"),
    ],
)
def test_many_names_are_looked_up_in_a_list(selected: int, looks: list[str], borne: int) -> None:
    """Of the owner's pods, first: its namespace may have very many others. That its pods do not bear a name proves
    nothing.
    """
    slots, seen = range(10, 31), f"need pods {LIST_POD_RV}"
    ended = [
        "; ".join([f"drop create {slot}", f"drop reserved {slot}", *([seen] if int(slot) < borne else [])])
        for slot in slots_by_name(slots)
    ]
    owner = with_fields(wants(31), status=ReplicaSetStatus(31, 31, 31, 31, None, 1))
    transcript = [f"list selected pods -> 50 {'R' * selected}", *looks]
    transcript.append(f"ok{' in 1000 ms' if borne > 10 else ''}: {'; '.join(ended)}")
    plays(claimed(owner, pods("R" * 31), *[f"reserved {slot}, over" for slot in slots]), "\n".join(transcript))


def test_without_a_selector_that_the_server_would_take_the_namespace_is_listed() -> None:
    names = [f"reserved {slot}, over" for slot in range(10, 31)]
    dropped = [f"drop create {slot}; drop reserved {slot}" for slot in slots_by_name(range(10, 31))]
    wrong = label_selector({"a b": ""})
    owner = with_fields(wants(1), deleting_ms=1, selector=wrong)
    plays(claimed(owner, pods("R"), *names), f"list pods -> 50 R\nok: {'; '.join(dropped)}")


def test_what_stays_open_is_told_by_the_status() -> None:
    """Not by the errors of this turn alone, or the condition would come and go with each pause."""
    why = "create pods/web-x: the server answered 500"
    claim = claimed(wants(2), pods("R"), "create 5, 6", f"said {why}")
    plays(
        claim,
        f"""
        send status 1, full 1, ready 1, available 1, FailedCreate ({why}) @5 -> 200@30
        ok: need replicasets 30
        """,
    )


def test_the_last_answer_goes_with_what_was_open() -> None:
    conditions = (Condition("ReplicaFailure", "True", "FailedCreate", "why", 1),)
    plays(
        claimed(wants(2, with_fields(TWO, conditions=conditions)), pods("RR"), "create 1", "said why"),
        """
        send status 2, full 2, ready 2, available 2, no conditions @5 -> 200@30
        ok: drop create 1; need replicasets 30; drop said
        """,
    )


def test_a_name_passed_over_is_told_by_the_status() -> None:
    claim = claimed(wants(1), pods("R"), "passed 0", "said why")
    plays(
        claim,
        """
        send status 1, full 1, ready 1, available 1, (why) @5 -> 200@30
        ok in 60000 ms: need replicasets 30
        """,
    )


def test_at_most_eight_names_are_passed_over() -> None:
    """A ninth is tried again and again."""
    passed = [f"passed {slot}" for slot in range(10, 18)]
    owner = with_fields(wants(1), deleting_ms=1)
    plays(
        claimed(owner, pods("R"), "create 5, 6, over", *passed),
        """
        read pods 5 -> 404
        ok in 60000 ms: drop create 5; drop reserved 5
        """,
    )


@pytest.mark.parametrize(
    ("grant", "then"),
    [
        pytest.param(
            "1 wait 50",
            "announce delete 0@7 -> recorded\nsend delete 0@7 -> 200@20\nok in 50 ms: answered 0@7",
            id="one of two",
        ),
        pytest.param("0 wait 90", "ok in 90 ms", id="none"),
    ],
)
def test_as_many_as_the_rate_limit_grants(grant: str, then: str) -> None:
    plays(claimed(wants(0, TWO), pods("RR"), "delete 1@7", "delete 0@7"), f"reserve 2 -> {grant}\n{then}")


def test_nothing_is_sent_for_an_owner_that_is_being_deleted() -> None:
    """Not even what was announced: its pods go with it."""
    plays(claimed(with_fields(wants(3), deleting_ms=1), pods("R"), "create 5", "delete 0@7"), "ok")


def test_nothing_is_sent_while_our_own_writes_are_unread() -> None:
    plays(claimed(wants(2), pods("R"), "create 5", needs="pods=90"), "ok")


def test_the_record_of_a_predecessor_is_dropped() -> None:
    """11.2.16: of the same name, another UID: its names and UIDs mean nothing to this one, which starts at once."""
    plays(claimed(rs(1), (), "create 0", "delete 1@7", record_owner=OTHER_UID), "gone in 0 ms")
    plays(claimed(rs(1), (), "reserved 0", record_owner=OTHER_UID, needs="pods=90"), "gone in 0 ms")


def test_an_owner_that_is_gone_leaves_nothing() -> None:
    """11.2.15: the turn that misses it drops the record, whatever is in it, and writes nothing."""
    plays(claimed(None, (), "create 0", "answered 1@7", "blocked 2=x"), "gone")
    plays(claimed(None), "gone")
