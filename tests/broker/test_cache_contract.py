"""The object cache: a prefix of history up to the watermark, on the twin and on real servers."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.broker.values.errors import EpochOver
from oarlock.broker.values.events import Compared, Event, Ingested
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change, Verdict
from tests.broker import broker_state
from tests.broker.broker_cases import QUEUE, Case, claim, claim_one, finish, opened, state_of

PODS = "pods"


def pod(name: str, rv: int, blob: bytes | None = b"pod", owner: str = "", wakes: str = "") -> Event:
    """A change of ns/<name>. ``owner``: index entry; ``wakes``: keys of the queue, by blanks."""
    entries = (f"owner={owner}",) if owner else ("orphan=ns",)
    woken = tuple(f"{QUEUE}:ns/{each}" for each in wakes.split())
    return Event(f"ns/{name}", str(rv), f"uid-{name}", blob, entries, woken)


def stream(case: Case) -> list[str]:
    return broker_state.queued(case.state(), QUEUE)


def cache(case: Case) -> dict[str, Any]:
    """Objects and index entries of the generation that is read, and nothing of any other."""
    state = case.state()
    generation = state["generation"][PODS]
    parts: dict[str, Any] = {"objects": {}, "index": {}}
    for name, objects in state.get("objects", {}).items():
        assert name in (f"{PODS}/{generation}", "replicasets/first-replicasets"), f"{name} was left behind"
        if name.startswith(PODS):
            parts["objects"] = {each: text.split("\n")[3] for each, text in objects.items()}
    for name, ids in state.get("index", {}).items():
        resource, of, entry = name.split("/", 2)
        assert (resource, of) == (PODS, generation), f"{name} was left behind"
        parts["index"][entry] = ids
    return parts


def relisted(case: Case, generation: str, rv: int, *events: Event) -> Ingested:
    assert case.ingestor.stage(PODS, generation, events)
    return case.ingestor.commit_list(PODS, generation, str(rv))


def republished(case: Case, chunk: int = 500) -> int:
    """Run the walk to its end. Returns the calls it took."""
    calls = 1
    while case.ingestor.republish(chunk):
        calls += 1
    return calls


# -- ingest ------------------------------------------------------------------------------------------------------------


def test_a_batch_updates_cache_index_watermark_and_queue_in_one_step(case: Case) -> None:
    opened(case)
    batch = [pod("a", 101, b"A", "u1", "web"), pod("b", 103, b"B", "u1", "web db")]
    assert case.ingestor.ingest(PODS, "100", "105", batch) == Ingested("OK", "105", 2, 0)
    assert cache(case) == {"objects": {"ns/a": "A", "ns/b": "B"}, "index": {"owner=u1": ["ns/a", "ns/b"]}}
    assert stream(case) == ["ns/web", "ns/db"]
    assert case.ingestor.watermark(PODS) == case.ingestor.watermarks()[PODS] == "105"
    assert case.ingestor.look(PODS, ids=["ns/b", "ns/none", "ns/a"]) == (
        "105",
        [Cached("103", "uid-b", b"B"), Cached("101", "uid-a", b"A")],
    )


def test_without_a_list_nothing_is_ingested(case: Case) -> None:
    assert case.ingestor.ingest(PODS, "1", "2", [pod("a", 2)]) == Ingested("NEEDLIST")
    assert (case.ingestor.watermark(PODS), case.ingestor.watermarks()) == (None, {})
    assert case.ingestor.look(PODS, ids=["ns/a"]) == ("", [])


@pytest.mark.parametrize(
    ("start", "end", "verdict", "mark", "skipped"),
    [
        pytest.param("100", "110", "OK", "110", 0, id="contiguous"),
        pytest.param("101", "110", "GAP", "100", 0, id="a gap of one"),
        pytest.param("99", "110", "OK", "110", 0, id="overlapping"),
        pytest.param("9", "1000", "OK", "1000", 0, id="nine is before a hundred"),
        pytest.param("1000", "1001", "GAP", "100", 0, id="a thousand is behind a hundred"),
        pytest.param("50", "90", "OK", "100", 1, id="wholly known: the watermark never goes back"),
    ],
)
def test_contiguity(case: Case, start: str, end: str, verdict: str, mark: str, skipped: int) -> None:
    opened(case)
    rv = 90 if end == "90" else 105
    answer = case.ingestor.ingest(PODS, start, end, [pod("a", rv)])
    assert (answer.verdict, answer.skipped) == (verdict, skipped)
    if verdict == "GAP":
        assert answer.watermark == "100"
    assert case.ingestor.watermark(PODS) == mark
    assert ("ns/a" in cache(case)["objects"]) == (verdict == "OK" and not skipped)


def test_what_the_cache_has_passed_is_skipped(case: Case) -> None:
    """Two ingestors bring the same events; the second changes and wakes nothing."""
    opened(case)
    batch = [pod("a", 101, b"A", wakes="web"), pod("b", 102, b"B", wakes="web")]
    case.ingestor.ingest(PODS, "100", "102", batch)
    finish(case, claim_one(case))
    before = case.state()
    assert case.ingestor.ingest(PODS, "100", "102", batch) == Ingested("OK", "102", 0, 2)
    assert case.state() == before
    assert case.ingestor.ingest(PODS, "100", "103", [*batch, pod("c", 103, wakes="db")]).skipped == 2
    assert stream(case) == ["ns/db"]


def test_revisions_are_compared_as_length_and_text(case: Case) -> None:
    """2^53 and above: numbers of Lua and of JSON lose digits there."""
    opened(case, rv="9007199254740992")
    assert case.ingestor.ingest(PODS, "9007199254740992", "9007199254740993", [pod("a", 9007199254740993)]).skipped == 0
    assert case.ingestor.ingest(PODS, "9007199254740994", "9007199254740995", []).verdict == "GAP"
    assert case.ingestor.watermark(PODS) == "9007199254740993"


def test_a_tombstone_is_not_needed(case: Case) -> None:
    """A late 'set' of an object that is gone is below the watermark, which says more than any tombstone would.

    Ingestor 1 saw a pod come (101) and go (102). Ingestor 2, slower, brings its coming only now: the cache is the
    history up to 102, in which the pod is gone, so what is at or below 102 cannot change it.
    """
    opened(case)
    case.ingestor.ingest(PODS, "100", "101", [pod("a", 101, b"A", "u1", "web")])
    case.ingestor.ingest(PODS, "101", "102", [pod("a", 102, None, wakes="web")])
    finish(case, claim_one(case))
    late = case.ingestor.ingest(PODS, "100", "101", [pod("a", 101, b"A", "u1", "web")])
    assert late == Ingested("OK", "101", 0, 1)
    assert cache(case) == {"objects": {}, "index": {}}
    assert stream(case) == []
    # A new object of the name is above it.
    case.ingestor.ingest(PODS, "102", "103", [pod("a", 103, b"new", "u2", "db")])
    assert cache(case)["objects"] == {"ns/a": "new"}


def test_old_and_new_wake_keys_are_woken(case: Case) -> None:
    """A pod that changes hands wakes whom it leaves and whom it joins; a deletion whom it had."""
    opened(case)
    case.ingestor.ingest(PODS, "100", "101", [pod("a", 101, b"A", "u1", "web")])
    finish(case, claim_one(case))
    case.ingestor.ingest(PODS, "101", "102", [pod("a", 102, b"A", "u2", "db")])
    assert stream(case) == ["ns/web", "ns/db"]
    assert cache(case)["index"] == {"owner=u2": ["ns/a"]}
    for one in claim(case):
        finish(case, one)
    case.ingestor.ingest(PODS, "102", "103", [pod("a", 103, None)])
    assert stream(case) == ["ns/db"], "the event of a deletion need not know whose it was"
    assert cache(case) == {"objects": {}, "index": {}}


def test_an_unchanged_projection_moves_its_revision_and_wakes_nobody(case: Case) -> None:
    opened(case)
    case.ingestor.ingest(PODS, "100", "101", [pod("a", 101, b"A", "u1", "web")])
    finish(case, claim_one(case))
    assert case.ingestor.ingest(PODS, "101", "102", [pod("a", 102, b"A", "u1", "web")]) == Ingested("OK", "102", 0, 0)
    assert stream(case) == []
    assert case.ingestor.look(PODS, ids=["ns/a"])[1][0].rv == "102"


def test_a_signature_is_kept_and_its_change_wakes_nobody(case: Case) -> None:
    opened(case)
    case.ingestor.ingest(PODS, "100", "101", [pod("a", 101, b"A", "u1", "web")._replace(signature="k.1")])
    assert case.ingestor.look(PODS, index=["owner=u1"])[1] == [Cached("101", "uid-a", b"A", "k.1")]
    finish(case, claim_one(case))
    signed = pod("a", 102, b"A", "u1", "web")._replace(signature="k.2")
    assert case.ingestor.ingest(PODS, "101", "102", [signed]) == Ingested("OK", "102", 0, 0)
    assert stream(case) == []
    assert case.ingestor.look(PODS, ids=["ns/a"])[1] == [Cached("102", "uid-a", b"A", "k.2")]
    case.ingestor.ingest(PODS, "102", "103", [pod("a", 103, None)])
    assert cache(case)["objects"] == {}
    assert relisted(case, "g2", 104, pod("a", 104, b"A", "u1")._replace(signature="k.3")).verdict == "OK"
    assert case.ingestor.look(PODS, ids=["ns/a"])[1] == [Cached("104", "uid-a", b"A", "k.3")]


def test_an_unchanged_projection_still_wakes_who_waits_for_it(case: Case) -> None:
    opened(case)
    case.ingestor.ingest(PODS, "100", "101", [pod("a", 101, b"A", "u1", "web")])
    one = claim_one(case)
    finish(case, one, Verdict.OK, None, Change.min_rv(PODS, "102"))
    case.ingestor.ingest(PODS, "101", "102", [pod("a", 102, b"A", "u1", "web")])
    assert stream(case) == ["ns/web"]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(Event("ns/a", "102", "uid-a", b"B", ("owner=u1",), ("replicaset:ns/web",)), id="blob"),
        pytest.param(Event("ns/a", "102", "other", b"A", ("owner=u1",), ("replicaset:ns/web",)), id="uid"),
        pytest.param(Event("ns/a", "102", "uid-a", b"A", ("owner=u2",), ("replicaset:ns/web",)), id="index entry"),
        pytest.param(Event("ns/a", "102", "uid-a", None), id="deleted"),
    ],
)
def test_any_change_of_a_projection_wakes(case: Case, second: Event) -> None:
    opened(case)
    case.ingestor.ingest(PODS, "100", "101", [pod("a", 101, b"A", "u1", "web")])
    finish(case, claim_one(case))
    case.ingestor.ingest(PODS, "101", "102", [second])
    assert stream(case) == ["ns/web"]


def test_a_running_key_is_marked_by_an_event(case: Case) -> None:
    opened(case)
    case.worker.add(QUEUE, ["ns/web"])
    one = claim_one(case)
    case.ingestor.ingest(PODS, "100", "101", [pod("a", 101, wakes="web")])
    assert state_of(case, "ns/web") == "running+"
    finish(case, one)
    assert state_of(case, "ns/web") == "queued"


def test_index_entries_follow_their_object(case: Case) -> None:
    opened(case)

    def entries(rv: int, *names: str) -> None:
        case.ingestor.ingest(PODS, str(rv - 1), str(rv), [Event("ns/a", str(rv), "u", b"A", names)])

    entries(101, "owner=1", "node=x")
    assert cache(case)["index"] == {"owner=1": ["ns/a"], "node=x": ["ns/a"]}
    entries(102, "node=x", "owner=2")
    assert cache(case)["index"] == {"owner=2": ["ns/a"], "node=x": ["ns/a"]}
    assert case.ingestor.look(PODS, index=["owner=1"])[1] == []
    assert case.ingestor.look(PODS, index=["owner=2", "node=x"])[1] == [Cached("102", "u", b"A")]
    entries(103)
    assert cache(case)["index"] == {}


def test_a_look_at_thousands(case: Case) -> None:
    opened(case)
    case.ingestor.stage(PODS, "g2", [pod(f"p{i}", 90, b"%d" % i, "u1") for i in range(9_000)])
    case.ingestor.commit_list(PODS, "g2", "200")
    for found in (
        case.worker.look(PODS, index=["owner=u1"])[1],
        case.worker.look(PODS, ids=[f"ns/p{i}" for i in range(9_000)])[1],
    ):
        assert {each.blob for each in found} == {b"%d" % i for i in range(9_000)}


def test_the_watermark_is_confirmed_by_empty_batches(case: Case) -> None:
    """Bookmarks and idle watches: the view's age, not the revision, decides about deletes."""
    opened(case)
    case.advance(5_000)
    case.ingestor.ingest(PODS, "100", "100", [])
    assert case.state()["watermark_at"][PODS] == str(case.now_ms())


# -- a list that is compared -------------------------------------------------------------------------------------------


def test_a_part_of_a_list_is_held_against_the_cache(case: Case) -> None:
    opened(case)
    case.ingestor.ingest(PODS, "100", "112", [pod("a", 101), pod("b", 109), pod("c", 112)])
    generation = case.state()["generation"][PODS]
    versions = [("ns/a", "101"), ("ns/b", "10"), ("ns/c", "113"), ("ns/d", "101")]
    assert case.ingestor.compare(PODS, generation, versions) == Compared(generation, "112", 3, 1)
    assert case.ingestor.compare(PODS, generation, ()) == Compared(generation, "112", 3, 0)
    assert case.ingestor.compare(PODS, "", versions) == Compared(generation, "112", 0, 0), "it is told the generation"
    assert case.ingestor.compare("nodes", "0", [("a", "1")]) == Compared("0", "", 0, 0), "never listed"


def test_a_generation_that_is_read_no_more_is_not_compared_with(case: Case) -> None:
    opened(case)
    before = case.state()["generation"][PODS]
    relisted(case, "g2", 120, pod("a", 101))
    assert case.ingestor.compare(PODS, before, [("ns/a", "101")])[:2] == ("g2", "120")
    assert case.ingestor.compare(PODS, before, [("ns/a", "101")]).same == 0
    assert case.ingestor.compare(PODS, "g2", [("ns/a", "101")]) == Compared("g2", "120", 1, 1)


def test_the_watermark_is_passed_on_only_from_where_it_is(case: Case) -> None:
    """An event in between must not be skipped, though a batch that begins earlier would be taken."""
    opened(case)
    assert case.ingestor.pass_to(PODS, "100", "105")
    case.advance(5_000)
    assert not case.ingestor.pass_to(PODS, "100", "110")
    assert not case.ingestor.pass_to(PODS, "106", "110")
    assert not case.ingestor.pass_to("nodes", "100", "110"), "never listed"
    assert case.state()["watermark"][PODS] == "105"
    assert case.ingestor.pass_to(PODS, "105", "110")
    assert case.state()["watermark"][PODS] == "110"
    assert case.state()["watermark_at"][PODS] == str(case.now_ms())


def test_a_comparison_of_an_epoch_that_is_over(case: Case) -> None:
    opened(case)
    earlier = case.ingestor
    case.bootstrap()
    with pytest.raises(EpochOver):
        earlier.compare(PODS, "0", [("ns/a", "101")])


# -- staged lists ------------------------------------------------------------------------------------------------------


def test_what_ends_below_the_watermark_confirms_nothing(case: Case) -> None:
    """An ingestor far behind, alone with the API gone, must not make the view of the other one look fresh."""
    opened(case)
    case.ingestor.ingest(PODS, "100", "105", [pod("a", 105)])
    before = case.state()["watermark_at"]
    case.advance(5_000)
    assert case.ingestor.ingest(PODS, "100", "104", [pod("b", 104)]).skipped == 1
    assert case.state()["watermark_at"] == before


def test_a_list_replaces_the_cache_at_once(case: Case) -> None:
    opened(case)
    case.ingestor.ingest(PODS, "100", "102", [pod("a", 101, b"A", "u1", "web"), pod("b", 102, b"B", "u2", "db")])
    for one in claim(case):
        finish(case, one)
    assert case.ingestor.stage(PODS, "g2", [pod("b", 102, b"B", "u2", "db")])
    assert case.ingestor.stage(PODS, "g2", [pod("c", 110, b"C", "u3", "new")])
    assert case.ingestor.look(PODS, ids=["ns/a", "ns/c"])[1] == [Cached("101", "uid-a", b"A")], "not read before"
    assert case.ingestor.commit_list(PODS, "g2", "120") == Ingested("OK", "120")
    assert case.ingestor.look(PODS, ids=["ns/a", "ns/b", "ns/c"]) == (
        "120",
        [Cached("102", "uid-b", b"B"), Cached("110", "uid-c", b"C")],
    )
    assert stream(case) == []
    republished(case)
    assert sorted(stream(case)) == ["ns/db", "ns/new", "ns/web"], "whose pod vanished is woken by the old generation"
    assert cache(case) == {
        "objects": {"ns/b": "B", "ns/c": "C"},
        "index": {"owner=u2": ["ns/b"], "owner=u3": ["ns/c"]},
    }


def test_a_list_older_than_the_watermark_is_refused(case: Case) -> None:
    opened(case)
    case.ingestor.ingest(PODS, "100", "150", [pod("a", 150, b"A", "u1")])
    assert relisted(case, "g2", 149, pod("old", 90, b"old", "u9", "web")) == Ingested("OLD", "150")
    republished(case)
    assert cache(case)["objects"] == {"ns/a": "A"}
    assert "staging" not in case.state()
    assert relisted(case, "g3", 150, pod("a", 150, b"A", "u1")).verdict == "OK", "one equally old is as good"


def test_only_one_stages_at_a_time(case: Case) -> None:
    opened(case)
    assert case.ingestor.stage(PODS, "mine", [pod("a", 90)], lock_ms=30_000)
    assert not case.ingestor.stage(PODS, "other", [pod("b", 90)])
    assert case.ingestor.stage("replicasets", "other", []), "each resource has its own"
    case.advance(29_000)
    assert case.ingestor.stage(PODS, "mine", [pod("c", 91)], lock_ms=30_000)
    case.advance(29_000)
    assert not case.ingestor.stage(PODS, "other", [])
    assert case.ingestor.commit_list(PODS, "other", "200").verdict == "BUSY"
    assert case.ingestor.commit_list(PODS, "mine", "200").verdict == "OK"
    assert case.ingestor.stage(PODS, "other", [])


def test_parts_are_sent_together_and_waited_for_later(case: Case) -> None:
    opened(case)
    staged = case.ingestor.send_stage(PODS, "g2", [[pod("a", 90, b"A"), pod("b", 90, b"B")], [pod("c", 91, b"C")]])
    assert case.ingestor.watermark(PODS) == "100", "other calls may come before the answers"
    assert staged()
    assert case.ingestor.send_stage(PODS, "g2", [[pod("d", 92, b"D")]])()
    assert case.ingestor.commit_list(PODS, "g2", "200").verdict == "OK"
    republished(case)
    assert cache(case)["objects"] == {"ns/a": "A", "ns/b": "B", "ns/c": "C", "ns/d": "D"}


def test_parts_are_not_staged_beside_another_stager(case: Case) -> None:
    opened(case)
    assert case.ingestor.stage(PODS, "other", [])
    assert not case.ingestor.send_stage(PODS, "mine", [[pod("a", 90)], [pod("b", 90)]])()
    assert case.ingestor.commit_list(PODS, "other", "200").verdict == "OK"
    assert case.ingestor.send_stage(PODS, "mine", [[pod("a", 90)]])(), "nobody stages any more"


def test_parts_of_an_epoch_that_is_over_are_refused(case: Case) -> None:
    opened(case)
    old = case.ingestor
    case.bootstrap()
    with pytest.raises(EpochOver):
        old.send_stage(PODS, "g2", [[pod("a", 90)], [pod("b", 90)]])()
    assert "staging" not in case.state()


def test_a_clock_that_went_back_does_not_keep_a_dead_stagers_lock(case: Case) -> None:
    opened(case)
    assert case.ingestor.stage(PODS, "dead", [], lock_ms=5_000)
    case.jump(-3_600_000)
    assert case.ingestor.stage(PODS, "next", [], lock_ms=5_000)
    assert not case.ingestor.stage(PODS, "dead", [], lock_ms=5_000)
    assert not case.ingestor.stage(PODS, "third", [], lock_ms=5_000)


def test_a_late_stager_that_nobody_replaced_goes_on(case: Case) -> None:
    opened(case)
    case.ingestor.stage(PODS, "mine", [pod("a", 90, b"A")], lock_ms=1_000)
    case.advance(60_000)
    assert case.ingestor.stage(PODS, "mine", [pod("b", 91, b"B")], lock_ms=1_000)
    case.advance(60_000)
    assert case.ingestor.commit_list(PODS, "mine", "200").verdict == "OK"
    republished(case)
    assert cache(case)["objects"] == {"ns/a": "A", "ns/b": "B"}


def test_a_dead_stagers_list_is_swept_and_can_never_come_back(case: Case) -> None:
    """Its first half is gone; the second half alone would be a list with a hole."""
    opened(case)
    case.ingestor.stage(PODS, "late", [pod("a", 90, b"A", "u1")], lock_ms=1_000)
    case.advance(1_000)
    assert case.ingestor.stage(PODS, "next", [pod("b", 90, b"B", "u2")])
    assert not case.ingestor.stage(PODS, "late", [pod("c", 91)])
    assert case.ingestor.commit_list(PODS, "late", "300").verdict == "BUSY"
    assert case.ingestor.commit_list(PODS, "next", "200").verdict == "OK"
    assert not case.ingestor.stage(PODS, "late", [pod("c", 91)])
    assert case.ingestor.commit_list(PODS, "late", "300").verdict == "BUSY"
    republished(case)
    assert cache(case) == {"objects": {"ns/b": "B"}, "index": {"owner=u2": ["ns/b"]}}


def test_the_generation_being_read_is_never_staged_into(case: Case) -> None:
    opened(case)
    assert not case.ingestor.stage(PODS, "first-pods", [pod("a", 90)])
    assert cache(case)["objects"] == {}


def test_events_go_on_while_a_list_is_staged(case: Case) -> None:
    """They are of the generation that is read; the list, if it is newer than all of them, has them too."""
    opened(case)
    case.ingestor.stage(PODS, "g2", [pod("a", 105, b"A")])
    case.ingestor.ingest(PODS, "100", "105", [pod("a", 105, b"A")])
    assert cache_of(case, "first-pods") == ["ns/a"]
    assert case.ingestor.commit_list(PODS, "g2", "110").verdict == "OK"
    assert case.ingestor.ingest(PODS, "105", "111", [pod("a", 106, b"late"), pod("b", 111, b"B")]).skipped == 1
    republished(case)
    assert cache(case)["objects"] == {"ns/a": "A", "ns/b": "B"}


def cache_of(case: Case, generation: str) -> list[str]:
    return sorted(case.state().get("objects", {}).get(f"{PODS}/{generation}", {}))


def test_a_walk_in_steps_survives_its_walker(case: Case) -> None:
    """The cursor is in Redis: whoever calls next goes on, and every key is woken at least once."""
    opened(case)
    pods = [pod(f"p{i}", 90, b"x" * 100, f"u{i}", f"o{i}") for i in range(700)]
    case.ingestor.stage(PODS, "g2", pods)
    case.ingestor.commit_list(PODS, "g2", "120")
    assert case.ingestor.republish(50) > 0
    some = set(stream(case))
    assert 0 < len(some) < 700
    assert case.ingestor.stage(PODS, "g3", pods[:300])
    assert case.ingestor.commit_list(PODS, "g3", "130").verdict == "OK", "another list comes before it is done"
    calls = republished(case, 50)
    assert calls > 10
    assert set(stream(case)) == {f"ns/o{i}" for i in range(700)}
    assert len(cache(case)["objects"]) == 300
    assert len(cache(case)["index"]) == 300
    assert case.ingestor.republish(50) == 0


def test_an_empty_list_is_a_list(case: Case) -> None:
    opened(case)
    case.ingestor.ingest(PODS, "100", "101", [pod("a", 101, b"A", "u1", "web")])
    finish(case, claim_one(case))
    assert relisted(case, "g2", 120).verdict == "OK"
    republished(case)
    assert (cache(case), stream(case)) == ({"objects": {}, "index": {}}, ["ns/web"])


# -- open --------------------------------------------------------------------------------------------------------------


def test_turns_begin_when_every_resource_was_listed(case: Case) -> None:
    case.worker.register("w1", "s", [QUEUE])
    assert case.ingestor.open(["replicasets", PODS]) == "replicasets"
    for resource, missing in (("replicasets", PODS), (PODS, "")):
        case.ingestor.stage(resource, "g1", [])
        case.ingestor.commit_list(resource, "g1", "100")
        assert case.ingestor.open(["replicasets", PODS]) == missing
        assert (case.state()["phase"] == "OPEN") == (missing == "")
