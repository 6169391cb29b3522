"""What a key expects, as `explain` and `expectations` tell it: every form of an entry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oarlock.broker.looks.views import ExpectationsView, KeyView
from oarlock.cli.explain.expectation_entries import EntryView, entries_of, said_of, state_told
from oarlock.cli.explain.expectation_sentences import sentences_of_expectations
from oarlock.cli.explain.sentences import Fleet, Owner, explain
from oarlock.cli.tables import listed
from oarlock.controllers.objects.model import ReplicaSet, ReplicaSetStatus

NOW_MS, WALL_MS = 1_800_000_000_000, 1_700_000_000_000
SENT_ONCE = f"pending since_ms={NOW_MS - 1_200} sent_ms={NOW_MS - 1_200} tries=1"
SENT_OFTEN = f"pending since_ms={NOW_MS - 125_000} sent_ms={NOW_MS - 4_000} tries=3"
UNTIL = f"until_ms={NOW_MS + 9_000}"
GONE_BY = f"until_ms={NOW_MS - 1}"
GOES_ON = "Everything else goes on meanwhile, counting each of these both as done and as not done."


def record(fields: dict[str, str]) -> ExpectationsView:
    return ExpectationsView("replicaset", "ns/web", {"owner": "u", **fields}, 1000, NOW_MS)


@pytest.mark.parametrize(
    ("what", "state", "told", "sentences"),
    [
        pytest.param(
            "create pods/a",
            SENT_ONCE,
            "no answer: sent 1.2s ago",
            ["1 create has no answer yet: a (sent 1.2s ago).", GOES_ON],
            id="create",
        ),
        pytest.param(
            "create pods/a",
            f"{SENT_OFTEN} node=n1 {UNTIL}",
            "no answer: sent 3 times in 2m05s, the last time 4.0s ago, may land for another 9.0s, node=n1",
            [
                "1 create has no answer yet: a for n1 (sent 3 times in 2m05s, the last time 4.0s ago, may land for"
                " another 9.0s).",
                GOES_ON,
            ],
            id="create again and again",
        ),
        pytest.param(
            "create pods/a",
            f"{SENT_OFTEN} over",
            "no answer: sent 3 times in 2m05s, the last time 4.0s ago, to be looked up",
            [
                "1 create has no answer yet: a (sent 3 times in 2m05s, the last time 4.0s ago, to be looked up).",
                GOES_ON,
            ],
            id="create whose time is over",
        ),
        pytest.param(
            "create pods/a",
            f"{SENT_ONCE} {GONE_BY}",
            "no answer: sent 1.2s ago, to be looked up",
            ["1 create has no answer yet: a (sent 1.2s ago, to be looked up).", GOES_ON],
            id="create whose time ended without a claim since",
        ),
        pytest.param(
            "rewritten",
            f"times=7 rv=5 inputs=abc {UNTIL}",
            "7 times in a row, no turn for another 9.0s",
            [
                "Its status was written though nothing else had changed, 7 times in a row, no turn for another 9.0s: a"
                " time or a random value may be in it."
            ],
            id="status written again and again",
        ),
        pytest.param(
            "rewritten", f"times=2 rv=5 inputs=abc {GONE_BY}", "2 times in a row", [], id="status written twice"
        ),
        pytest.param(
            "delete pods/a",
            f"{SENT_ONCE} uid=u1 rv=5 {UNTIL}",
            "no answer: sent 1.2s ago, may land for another 9.0s",
            ["1 delete has no answer yet: a (sent 1.2s ago, may land for another 9.0s).", GOES_ON],
            id="delete",
        ),
        pytest.param(
            "delete pods/a",
            "answered uid=u1 rv=5",
            "answered uid=u1 rv=5",
            ["1 delete is done and not yet seen in the cache: a."],
            id="delete that was answered",
        ),
        pytest.param(
            "reserved pods/a",
            f"node=n1 {UNTIL}",
            "for another 9.0s, node=n1",
            ["1 name is reserved, as a create that was sent may still take it: a for n1 (for another 9.0s)."],
            id="reserved",
        ),
        pytest.param(
            "reserved pods/a",
            "over",
            "until the next look at the API",
            ["1 name is reserved, as a create that was sent may still take it: a (until the next look at the API)."],
            id="reserved and over",
        ),
        pytest.param(
            "passed pods/a",
            UNTIL,
            "for another 9.0s",
            ["1 name is passed over where another will do, as it was refused or never answered: a (for another 9.0s)."],
            id="passed over",
        ),
        pytest.param(
            "rest pods/a",
            "uid=u1",
            "until that has gone",
            ["1 name rests, as its pod has failed: a (until that has gone)."],
            id="resting while the pod is there",
        ),
        pytest.param(
            "rest pods/a",
            UNTIL,
            "for another 9.0s",
            ["1 name rests, as its pod has failed: a (for another 9.0s)."],
            id="resting",
        ),
        pytest.param("rest pods/a", GONE_BY, "over", ["1 name rests, as its pod has failed: a (over)."], id="rested"),
        pytest.param(
            "blocked pods/a",
            "uid=u1",
            "uid=u1",
            ["1 name is blocked by a pod that is not its own: a."],
            id="blocked",
        ),
        pytest.param(
            "backoff n1",
            f"generation=2 delay_ms=10000 at_ms={WALL_MS - 1_000}",
            "for another 9.0s, 10.0s in all, generation 2",
            [],
            id="back-off",
        ),
        pytest.param("backoff n1", "nonsense", "nonsense", [], id="back-off that is none"),
        pytest.param("status replicasets/web", "pending since_ms=1", "pending since_ms=1", [], id="of no known kind"),
    ],
)
def test_an_entry(what: str, state: str, told: str, sentences: list[str]) -> None:
    (entry,) = entries_of(record({what: state}), WALL_MS)
    assert (entry.what, entry.state, state_told(entry)) == (what, state, told)
    assert sentences_of_expectations(record({what: state})) == sentences


def test_the_times_of_an_entry_as_tools_read_them() -> None:
    fields = {
        "create pods/a": f"{SENT_OFTEN} node=n1 {UNTIL}",
        "delete pods/b": f"{SENT_OFTEN} uid=u1 rv=5 over",
        "passed pods/c": UNTIL,
        "reserved pods/a": f"node=n1 {UNTIL}",
        "rest pods/d": "uid=u2",
    }
    assert entries_of(record(fields), WALL_MS) == [
        EntryView("create pods/a", fields["create pods/a"], "node=n1", 9_000, 125_000, 4_000, 3),
        EntryView("delete pods/b", fields["delete pods/b"], "", 0, 125_000, 4_000, 3),
        EntryView("passed pods/c", UNTIL, left_ms=9_000),
        EntryView("reserved pods/a", fields["reserved pods/a"], "node=n1", 9_000),
        EntryView("rest pods/d", "uid=u2"),
    ]


def test_the_oldest_write_comes_first_and_its_reserved_name_is_not_told_twice() -> None:
    fields = {
        "create pods/a": SENT_ONCE,
        "create pods/b": f"{SENT_OFTEN} {UNTIL}",
        "reserved pods/b": UNTIL,
        "reserved pods/c": UNTIL,
        "said": "create pods/b: no.",
    }
    assert sentences_of_expectations(record(fields)) == [
        "2 creates have no answer yet: b (sent 3 times in 2m05s, the last time 4.0s ago, may land for another 9.0s),"
        " a (sent 1.2s ago).",
        "The last answer that proved nothing: create pods/b: no.",
        GOES_ON,
        "1 name is reserved, as a create that was sent may still take it: c (for another 9.0s).",
    ]


def test_of_many_only_some_are_named() -> None:
    told = sentences_of_expectations(
        record({f"create pods/a{each}": f"{SENT_ONCE} node=n{each}" for each in range(7)})
    )[0]
    assert told.startswith("7 creates have no answer yet: a0 for n0 (sent 1.2s ago), ")
    assert told.endswith("a4 for n4 (sent 1.2s ago) and 2 more.")


def test_the_last_answer_is_told_without_values_and_speaks_to_no_terminal() -> None:
    said = 'create pods/a: \x1b[2Jspec.x: Invalid value: "s3cret": must be no more'
    found = record({"create pods/a": SENT_ONCE, "said": said})
    assert "s3cret" not in said_of(found)
    key = KeyView("replicaset", "ns/web", "idle", None, 1, None, 0, 0, "", 5, found)
    web = ReplicaSet("ns", "web", "u", 1, 3, None, b"", {}, status=ReplicaSetStatus(3, 3, 3, 3, 0, 1))
    told = " ".join(explain(key, Owner(web, "80", 3, 0), Fleet("OPEN", True, 2)))
    assert "proved nothing: create pods/a: \\u001b[2Jspec.x: Invalid value: ...: must be no more." in told


@pytest.mark.parametrize(
    ("fields", "rests"),
    [
        ({"backoff n1": "generation=2 delay_ms=1 at_ms=1"}, True),
        ({"said": "create pods/a: no"}, True),
        ({"reserved pods/a": UNTIL}, False),
        ({"passed pods/a": UNTIL}, False),
        ({"rest pods/a": "uid=u1"}, False),
        ({"create pods/a": SENT_ONCE}, False),
    ],
    ids=lambda each: next(iter(each)).partition(" ")[0] if isinstance(each, dict) else "",
)
def test_whether_a_key_is_at_rest_with_it(fields: dict[str, str], rests: bool) -> None:
    key = KeyView("replicaset", "ns/web", "idle", None, None, None, 0, 0, "", None, record(fields))
    web = ReplicaSet("ns", "web", "u", 1, 3, None, b"", {}, status=ReplicaSetStatus(3, 3, 3, 3, 0, 1))
    said = explain(key, Owner(web, "80", 3, 0), Fleet("OPEN", True, 2))
    assert ("All is as it should be: there is nothing to do." in said) is rests


def test_a_clock_that_went_back_gives_no_negative_times() -> None:
    (entry,) = entries_of(replace(record({"create pods/a": SENT_ONCE}), now_ms=NOW_MS - 9_000), WALL_MS)
    assert (entry.age_ms, entry.sent_ago_ms) == (0, 0)


def test_listed() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(number) for number in range(6)]) == "0, 1, 2, 3, 4 and 1 more"
