"""Counts in place of objects: kept with every change of an object, handed over where a turn can have nothing to do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from oarlock.broker.values.claims import Batch, Claim, LoadSpec
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Change, Entry, Verdict
from tests.broker import broker_state
from tests.broker.broker_cases import LEASE_MS, QUEUE, Case, claim_one, claim_reply, finish, opened

KEY, UID = "ns/web", "uid-web"
CHILDREN = (("pods", "owner", "counts"), ("pods", "orphan", "wanted"))
SPEC = LoadSpec(QUEUE, "replicasets", CHILDREN)
READY, UNREADY, ENDING = b"+r/ns\nlabels", b"+u/ns\nlabels", b"-t/ns"


def child(name: str, rv: int, kind: bytes = READY, uid: str = UID) -> Event:
    """A counted one; with no kind one that is not."""
    words = (f"owner={uid}", "node=n")
    return Event(f"ns/{name}", str(rv), f"uid-{name}", name.encode(), words, (f"{QUEUE}:{KEY}",), kind=kind)


def gone(name: str, rv: int) -> Event:
    return Event(f"ns/{name}", str(rv), f"uid-{name}", None, (), (f"{QUEUE}:{KEY}",))


def filled(case: Case, children: Sequence[Event], *words: str) -> Case:
    """An owner with these words and children."""
    opened(case)
    case.ingestor.ingest("replicasets", "100", "101", [Event(KEY, "101", UID, b"owner", words)])
    case.ingestor.ingest("pods", "100", "200", children)
    return case


def claimed(case: Case, spec: LoadSpec = SPEC) -> Claim:
    case.worker.add(QUEUE, [KEY])
    one = claim_one(case, specs=(spec,))
    assert broker_state.problems(case.state()) == []
    return one


def counts(case: Case) -> dict[bytes, int]:
    """What a claim hands over; exactly one of counts and children."""
    one = claimed(case)
    finish(case, one)
    assert not (one.counts and one.children)
    return dict(one.counts)


TWO = (child("a", 101), child("b", 102))


def test_objects_are_whole_for_every_reader(case: Case) -> None:
    """The end of a blob that is kept with its class: in a claim, a look, a page, and where a name is taken."""
    filled(case, [*TWO, child("c", 103, ENDING), child("d", 104, b"")])
    whole = {"a": b"alabelsuid-a", "b": b"blabelsuid-b", "c": b"c", "d": b"d"}
    one = claimed(case, SPEC.in_full)
    assert sorted(each.blob for each in one.children) == list(whole.values())
    asked = [f"ns/{name}" for name in whole]
    assert [each.blob for each in case.worker.look("pods", ids=asked)[1]] == list(whole.values())
    page = case.worker.page("pods", (f"owner={UID}",))
    assert page is not None
    assert sorted(each.blob for each in page.objects) == list(whole.values())
    taken = case.worker.announce(one, UID, [Entry("create", "pods/a")], lease_ms=LEASE_MS)
    assert [each.object.blob for each in taken] == [whole["a"]]


def test_objects_of_a_class_may_lie_under_different_entries(case: Case) -> None:
    """Such as pods that are looked up by node. The first of their entries is the one that they count under."""

    def on(node: str, event: Event) -> Event:
        return event._replace(entries=(event.entries[0], f"node={node}"))

    pods = [on("n1", child("a", 101)), on("n2", child("b", 102)), on("n2", child("c", 103, UNREADY))]
    bare = [on("n3", child("d", 104, ENDING)), on("n1", child("e", 105, b""))]
    others = [child("f", 106)._replace(entries=(f"owner={UID}",)), child("x", 107, uid="other")]
    filled(case, [*pods, *bare, *others])
    for load_min in (0, 1):
        case.worker.add(QUEUE, [KEY])
        batch = claim_reply(case, specs=(SPEC,), load_min=load_min)
        assert isinstance(batch, Batch)
        (one,) = case.worker.load(batch).claims
        finish(case, one)
        blobs = sorted(each.blob for each in one.children)
        assert blobs == [b"alabelsuid-a", b"blabelsuid-b", b"clabelsuid-c", b"d", b"e", b"flabelsuid-f"]


@pytest.mark.parametrize(
    ("children", "words", "expected"),
    [
        pytest.param(TWO, ["=2"], {READY: 2}, id="as many as are asked for"),
        pytest.param((child("a", 101), child("b", 102, UNREADY)), ["=2"], {READY: 1, UNREADY: 1}, id="of two classes"),
        pytest.param(
            (*TWO, child("c", 103, ENDING)), ["=2"], {READY: 2, ENDING: 1}, id="what is ending is not asked for"
        ),
        pytest.param((child("c", 103, ENDING),), ["=0"], {ENDING: 1}, id="none"),
        pytest.param(TWO, [], {}, id="the owner asks for nothing: objects"),
        pytest.param(TWO, ["=3"], {}, id="too few: objects"),
        pytest.param(TWO, ["=1"], {}, id="too many: objects"),
        pytest.param((*TWO, child("c", 103, b"")), ["=2"], {}, id="one is not counted: objects"),
        pytest.param((*TWO, child("c", 103, uid="other")), ["=2"], {READY: 2}, id="another's do not count"),
        pytest.param(TWO, ["=2", "x=1", "=1"], {READY: 2}, id="of two numbers the first: at the beginning"),
        pytest.param(TWO, ["x=1", "=1", "=2"], {}, id="of two numbers the first: after another word"),
        pytest.param((), ["=0"], {}, id="no children"),
    ],
)
def test_when_counts_are_handed_over(
    case: Case, children: Sequence[Event], words: list[str], expected: dict[str, int]
) -> None:
    filled(case, children, *words)
    one = claimed(case)
    assert one.counts == expected
    mine = [each for each in children if f"owner={UID}" in each.entries]
    assert sorted(each.uid for each in one.children) == ([] if expected else sorted(each.uid for each in mine))


def test_objects_where_they_were_asked_for(case: Case) -> None:
    filled(case, TWO, "=2")
    one = claimed(case, SPEC.in_full)
    assert (len(one.children), one.counts) == (2, {})
    assert SPEC.in_full.text == f"{QUEUE} replicasets pods/owner/uid pods/orphan/wanted"


def test_an_orphan_that_may_matter_brings_the_objects(case: Case) -> None:
    filled(case, TWO, "?ns/a=1", "=2")
    orphan = Event("ns/o", "201", "uid-o", b"o", ("orphan=ns", "orphan=ns/a=1"))
    case.ingestor.ingest("pods", "200", "201", [orphan])
    one = claimed(case)
    assert (len(one.children), one.counts) == (3, {})


def test_what_is_open_brings_the_objects(case: Case) -> None:
    """An announced write, a note about a name, a revision that the cache has yet to pass; not one it has passed."""
    filled(case, TWO, "=2")
    one = claimed(case)
    assert one.counts
    case.worker.announce(one, UID, [Entry("create", "pods/x")], lease_ms=LEASE_MS)
    finish(case, one, Verdict.OK, None, Change.set("passed pods/x", "until_ms=1"))
    one = claimed(case)
    assert (len(one.children), one.counts) == (2, {})
    finish(case, one, Verdict.OK, None, Change.drop("create pods/x"), Change.drop("reserved pods/x"))
    one = claimed(case)
    assert (len(one.children), one.counts) == (2, {})
    finish(case, one, Verdict.OK, None, Change.drop("passed pods/x"), Change.min_rv("pods", "205"))
    one = claimed(case)
    assert (one.min_rv, len(one.children), one.counts) == ("pods=205", 2, {})
    finish(case, one)
    case.ingestor.ingest("pods", "200", "205", [])
    one = claim_one(case, specs=(SPEC,))
    assert (one.min_rv, one.counts) == ("", {READY: 2})


def test_every_change_is_counted_once(case: Case) -> None:
    filled(case, TWO, "=2")
    assert counts(case) == {READY: 2}
    case.ingestor.ingest("pods", "200", "210", [child("a", 210, UNREADY)])
    assert counts(case) == {READY: 1, UNREADY: 1}
    case.ingestor.ingest("pods", "205", "210", [child("a", 210, UNREADY)])  # the answer was lost: once more
    assert counts(case) == {READY: 1, UNREADY: 1}
    case.ingestor.ingest(
        "pods", "210", "220", [child("a", 211), child("a", 212, UNREADY), gone("b", 213), child("b", 220)]
    )
    assert counts(case) == {READY: 1, UNREADY: 1}
    case.ingestor.ingest("pods", "220", "230", [child("a", 230, b"")])
    assert counts(case) == {}
    case.ingestor.ingest("pods", "230", "240", [child("a", 240, uid="other"), child("c", 239)])
    assert counts(case) == {READY: 2}
    case.ingestor.ingest("pods", "240", "250", [gone("a", 248), gone("b", 249), gone("c", 250)])
    assert counts(case) == {}
    assert "summary" not in case.state()


def test_a_list_is_counted_anew(case: Case) -> None:
    """A chunk that is staged twice counts once. The generation that goes takes its counts along."""
    filled(case, [child(name, 101 + i) for i, name in enumerate("abcd")], "=2")
    for _ in range(2):
        assert case.ingestor.stage("pods", "g2", [child("a", 101), child("e", 205, UNREADY)])
    assert counts(case) == {}
    case.ingestor.commit_list("pods", "g2", "210")
    assert counts(case) == {READY: 1, UNREADY: 1}
    while case.ingestor.republish(1):
        assert broker_state.problems(case.state()) == []
    assert list(case.state()["summary"]) == [f"pods/g2/owner={UID}"]
    case.ingestor.ingest("pods", "210", "211", [child("e", 211)])
    assert counts(case) == {READY: 2}


def test_objects_where_nearly_each_is_of_its_own_class(case: Case) -> None:
    few, many = ([child(f"p{i}", 101 + i, b"+r/ns/%d" % i) for i in range(count)] for count in (32, 33))
    filled(case, few, "=32")
    assert len(counts(case)) == 32
    case.ingestor.ingest("replicasets", "101", "300", [Event(KEY, "300", UID, b"owner", ("=33",))])
    case.ingestor.ingest("pods", "200", "300", [many[-1]._replace(rv="300")])
    assert counts(case) == {}
