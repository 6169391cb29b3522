"""What a worker keeps in memory by version: each change reaches it once asked for, nothing is sent twice in vain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import redis

from oarlock.broker import keys
from oarlock.broker.steps import script_runner
from oarlock.broker.values.claims import Batch, LoadSpec
from oarlock.broker.values.errors import DataDamaged, EpochOver
from oarlock.broker.values.events import Event
from oarlock.broker.values.objects import Cached, Delta
from tests.broker.broker_cases import QUEUE, Case, RedisCase, claim_reply, finish, opened

NODES = "nodes"


def node(name: str, rv: int, blob: bytes | None = b"v1", *entries: str) -> Event:
    """A change of a node. Without ``entries`` it is mirrored."""
    return Event(name, str(rv), f"uid-{name}", blob, entries or ("mirror", "all"))


def listed(case: Case, generation: str, rv: int, *events: Event) -> None:
    assert case.ingestor.stage(NODES, generation, events)
    assert case.ingestor.commit_list(NODES, generation, str(rv)).verdict == "OK"
    while case.ingestor.republish():
        pass


def begun(case: Case, *names: str) -> None:
    """Listed at 100 as generation g1."""
    opened(case)
    listed(case, "g1", 100, *(node(name, 50) for name in names))


def ingest(case: Case, *events: Event) -> None:
    """Each batch begins where the last one ended."""
    mark = case.ingestor.watermark(NODES)
    assert mark is not None
    assert case.ingestor.ingest(NODES, mark, events[-1].rv, events).verdict == "OK"


def batch(case: Case, known: str) -> Batch:
    case.worker.add(QUEUE, ["ns/any"])
    found = claim_reply(case, specs=(LoadSpec(QUEUE, "replicasets", local_caches=((NODES, known),)),))
    assert isinstance(found, Batch)
    finish(case, found.claims[0])
    return found


def since(case: Case, known: str) -> Delta:
    """Sorted, for a full one comes in no order."""
    delta = batch(case, known).local_caches[NODES]
    return delta._replace(changed=sorted(delta.changed), gone=sorted(delta.gone))


def blobs(delta: Delta) -> dict[str, bytes]:
    return {object_id: each.blob for object_id, each in delta.changed}


def log_of(case: Case) -> dict[str, int]:
    return dict(case.state().get("changes", {}).get(f"{NODES}/g1", {}))


@pytest.mark.parametrize(
    "known",
    [
        pytest.param("", id="nothing"),
        pytest.param("-", id="a dash"),
        pytest.param("g0:0", id="another generation"),
        pytest.param("g1", id="no number"),
        pytest.param("g1:x", id="not a number"),
        pytest.param("g1:-1", id="a negative number"),
        pytest.param("g1:1", id="ahead of the log"),
        pytest.param("g1:99999999999999999999999999", id="far ahead"),
    ],
)
def test_a_version_that_is_not_known_gets_everything(case: Case, known: str) -> None:
    begun(case, "a", "b")
    found = since(case, known)
    assert (found.version, found.full, found.gone) == ("g1:0", True, [])
    assert found.changed == [("a", Cached("50", "uid-a", b"v1")), ("b", Cached("50", "uid-b", b"v1"))]


def test_a_current_version_gets_nothing(case: Case) -> None:
    begun(case, "a", "b")
    assert since(case, "g1:0") == Delta("g1:0", False, [], [])
    ingest(case, node("a", 101, b"v2"))
    assert since(case, "g1:1") == Delta("g1:1", False, [], [])


def test_what_came_changed_and_went(case: Case) -> None:
    begun(case, "a", "b", "c")
    ingest(case, node("a", 101, b"v2"), node("b", 102, None), node("d", 103))
    found = since(case, "g1:0")
    assert (found.version, found.full, found.gone) == ("g1:3", False, ["b"])
    assert found.changed == [("a", Cached("101", "uid-a", b"v2")), ("d", Cached("103", "uid-d", b"v1"))]
    assert blobs(since(case, "g1:1")) == {"d": b"v1"}
    assert since(case, "g1:1").gone == ["b"]
    assert since(case, "g1:2") == Delta("g1:3", False, [("d", Cached("103", "uid-d", b"v1"))], [])


def test_many_changes_of_one_object_are_one(case: Case) -> None:
    begun(case, "a")
    for rv in range(101, 120):
        ingest(case, node("a", rv, b"%d" % rv))
    found = since(case, "g1:0")
    assert (found.version, blobs(found)) == ("g1:19", {"a": b"119"})
    assert log_of(case) == {"a": 19}


def test_gone_and_come_again(case: Case) -> None:
    begun(case, "a")
    ingest(case, node("a", 101, None))
    assert since(case, "g1:0").gone == ["a"]
    ingest(case, node("a", 102, b"new"))
    for known in ("g1:0", "g1:1"):
        found = since(case, known)
        assert (blobs(found), found.gone) == ({"a": b"new"}, [])


def test_an_unchanged_projection_does_not_count(case: Case) -> None:
    """Kubelets report every few seconds; what is kept of a node does not change by that."""
    begun(case, "a")
    ingest(case, node("a", 101), node("a", 102))
    assert since(case, "g1:0").version == "g1:0"
    assert log_of(case) == {}
    assert case.ingestor.look(NODES, ids=["a"])[1][0].rv == "102"


def test_what_the_cache_has_passed_does_not_count(case: Case) -> None:
    begun(case, "a")
    ingest(case, node("a", 105, b"v2"))
    case.ingestor.ingest(NODES, "100", "106", [node("a", 104, b"late"), node("b", 106, None)])
    assert since(case, "g1:0").version == "g1:1", "neither what is late nor the end of what never was"


def test_a_refused_batch_does_not_count(case: Case) -> None:
    begun(case, "a")
    assert case.ingestor.ingest(NODES, "105", "106", [node("a", 106, b"v2")]).verdict == "GAP"
    assert since(case, "g1:0") == Delta("g1:0", False, [], [])


def test_an_object_is_mirrored_while_its_entries_say_so(case: Case) -> None:
    begun(case, "a")
    ingest(
        case,
        node("a", 101, b"v1", "all"),
        node("b", 102, b"v1", "all"),
        node("c", 103, b"v1", "unmirrored", "mirror=x"),
    )
    found = since(case, "g1:0")
    assert (found.version, found.changed, found.gone) == ("g1:1", [], ["a"])
    ingest(case, node("b", 104, b"v1", "x", "mirror"), node("a", 105, b"v2", "all"))
    found = since(case, "g1:1")
    assert (found.version, blobs(found), found.gone) == ("g1:2", {"b": b"v1"}, [])
    assert blobs(since(case, "")) == {"b": b"v1"}


def test_a_list_begins_a_new_log(case: Case) -> None:
    begun(case, "a", "b")
    ingest(case, node("a", 101, b"v2"))
    assert case.ingestor.stage(NODES, "g2", [node("a", 101, b"v2"), node("c", 103)])
    assert since(case, "g1:0").version == "g1:1", "what is staged is not read"
    assert case.ingestor.commit_list(NODES, "g2", "110").verdict == "OK"
    found = since(case, "g1:1")
    assert (found.version, found.full, blobs(found)) == ("g2:0", True, {"a": b"v2", "c": b"v1"})
    while case.ingestor.republish():
        pass
    assert [part for part in ("changes", "changes_at") if part in case.state()] == [], (
        "the sweep takes the old log along"
    )
    ingest(case, node("c", 111, None))
    assert since(case, "g2:0") == Delta("g2:1", False, [], ["c"])


def test_a_resource_that_was_never_listed_is_not_an_empty_one(case: Case) -> None:
    """Who decided on it would think that the cluster has no nodes."""
    opened(case)
    for known in ("", "g1:0"):
        assert since(case, known) == Delta("", False, [], [])
    listed(case, "g1", 100)
    assert since(case, "") == Delta("g1:0", True, [], [])


def test_the_age_of_a_mirror(case: Case) -> None:
    begun(case, "a")
    case.advance(300)
    marks = batch(case, "g1:0").watermarks
    assert (marks[NODES].rv, marks[NODES].age_ms) == ("100", 300)


def test_only_a_claim_that_brings_keys_brings_changes(case: Case) -> None:
    begun(case, "a")
    specs = (LoadSpec("none", "replicasets", local_caches=((NODES, ""),)), LoadSpec(QUEUE, "replicasets"))
    case.worker.add(QUEUE, ["ns/a"])
    found = claim_reply(case, specs=specs)
    assert isinstance(found, Batch)
    assert (found.local_caches, set(found.watermarks)) == ({}, {"replicasets"})


def test_several_mirrors(case: Case) -> None:
    begun(case, "a")
    case.ingestor.stage("classes", "c1", [Event("x", "7", "u", b"x", ("mirror",))])
    case.ingestor.commit_list("classes", "c1", "90")
    case.worker.add(QUEUE, ["ns/any"])
    spec = LoadSpec(QUEUE, "replicasets", (("pods", "owner", "uid"),), ((NODES, "g1:0"), ("classes", "")))
    found = claim_reply(case, specs=(spec,))
    assert isinstance(found, Batch)
    assert found.local_caches == {
        NODES: Delta("g1:0", False, [], []),
        "classes": Delta("c1:0", True, [("x", Cached("7", "u", b"x"))], []),
    }


def test_thousands_at_once(case: Case) -> None:
    """Lua's unpack fails near 8000 arguments."""
    opened(case)
    listed(case, "g1", 100, *(node(f"n{i}", 50) for i in range(9_000)))
    assert len(since(case, "").changed) == 9_000
    ingest(case, *(node(f"n{i}", 101 + i, b"v2" if i % 2 else None) for i in range(9_000)))
    found = since(case, "g1:0")
    assert (len(found.changed), len(found.gone)) == (4_500, 4_500)


# -- the log is bounded ------------------------------------------------------------------------------------------------


def churned(case: Case, rounds: int, at: int = 0) -> None:
    """Nodes that come, and go again, each under a name of its own."""
    rv = int(case.ingestor.watermark(NODES) or 0)
    for i in range(at, at + rounds):
        ingest(case, node(f"passing{i}", rv + 1), node(f"passing{i}", rv + 2, None))
        rv += 2


def test_names_of_what_is_gone_do_not_pile_up(case: Case) -> None:
    begun(case, "a", "b")
    ingest(case, node("a", 101, b"v2"))
    before = since(case, "g1:0")
    events, rv = [], 101
    for i in range(1_003):
        events += [node(f"passing{i}", rv + 1), node(f"passing{i}", rv + 2, None)]
        rv += 2
    ingest(case, *events)
    assert len(log_of(case)) == 1_004, "not more than twice the living and a thousand"
    assert len(since(case, before.version).gone) == 1_003
    ingest(case, node("passing1003", rv + 1), node("passing1003", rv + 2, None))
    assert len(log_of(case)) == 502, "the youngest 500, and as many as live"
    floor = case.state()["changes_at"][f"{NODES}/g1"]["floor"]
    assert min(log_of(case).values()) > floor
    last = 1 + 2 * 1_004
    assert since(case, before.version).full, "older than what the log still has"
    assert since(case, f"g1:{floor - 1}").full
    partly = since(case, f"g1:{floor}")
    assert (partly.version, partly.full, partly.changed, len(partly.gone)) == (f"g1:{last}", False, [], 502)
    everything = since(case, "")
    assert (everything.version, blobs(everything)) == (f"g1:{last}", {"a": b"v2", "b": b"v1"})
    churned(case, 3, at=2_000)
    assert len(log_of(case)) == 505
    assert len(since(case, f"g1:{last}").gone) == 3


# -- a script that fails midway ----------------------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.parametrize("kind", ["set", "del"])
def test_a_batch_that_fails_midway_and_is_repeated_loses_no_change(real: RedisCase, kind: str) -> None:
    """The log is written before the object that a repetition compares with."""
    begun(real, "a", "b", "c")
    ingest(real, node("b", 101, b"v2", "mirror", "bad"))
    start = since(real, "")
    held = dict(start.changed)
    generation: Any = real.worker
    name = f"{generation.keys.base}index:{NODES}:g1:bad"
    real.admin.unlink(name)
    real.admin.set(name, "of another type")
    gone = kind == "del"
    events = [node("a", 102, b"v2"), node("b", 103, None if gone else b"v3"), node("c", 104, b"v2")]
    with pytest.raises(DataDamaged, match="WRONGTYPE"):
        real.ingestor.ingest(NODES, "101", "104", events)
    real.admin.set(keys.epoch(), real.epoch)  # it is ended for that, but may not be: who met it may have died
    version = start.version
    real.admin.unlink(name)
    for repeated in (False, True):
        if repeated:
            assert real.ingestor.ingest(NODES, "101", "104", events).verdict == "OK"
        delta = since(real, version)
        assert not delta.full
        version, held = delta.version, {k: v for k, v in held.items() if k not in delta.gone} | dict(delta.changed)
    expected = {"a": b"v2", "c": b"v2"} | ({} if gone else {"b": b"v3"})
    assert {object_id: each.blob for object_id, each in held.items()} == expected
    assert since(real, version) == Delta(version, False, [], [])


# -- too many for a claim ----------------------------------------------------------------------------------------------

MANY = 1_001


def left(case: Case, known: str = "") -> Batch:
    """A claim of a worker that can load, before it does."""
    case.worker.add(QUEUE, ["ns/any"])
    found = claim_reply(case, specs=(LoadSpec(QUEUE, "replicasets", local_caches=((NODES, known),)),), load_min=1)
    assert isinstance(found, Batch)
    finish(case, found.claims[0])
    return found


def many(case: Case, count: int = MANY) -> list[str]:
    names = [f"n{number:04d}" for number in range(count)]
    begun(case, *names)
    return names


def test_many_are_left_to_be_loaded(case: Case) -> None:
    names = many(case)
    found = left(case)
    assert (found.unloaded, found.local_caches) == (True, {NODES: Delta("g1:0", unread=True)})
    loaded = case.worker.load(found)
    delta = loaded.local_caches[NODES]
    assert (loaded.unloaded, delta.version, delta.full, sorted(blobs(delta))) == (False, "g1:0", True, names)
    assert len(batch(case, "").local_caches[NODES].changed) == MANY, "who cannot load is handed all"


def test_a_thousand_come_with_the_claim(case: Case) -> None:
    names = many(case, MANY - 1)
    found = left(case)
    assert (found.unloaded, sorted(blobs(found.local_caches[NODES]))) == (False, names)


def test_many_changes_are_left_to_be_loaded(case: Case) -> None:
    names = many(case)
    for at in range(0, MANY, 200):
        ingest(case, *(node(name, 200 + number, b"v2") for number, name in enumerate(names) if at <= number < at + 200))
    assert left(case, "g1:0").local_caches[NODES] == Delta(f"g1:{MANY}", unread=True)
    few = left(case, f"g1:{MANY - 3}").local_caches[NODES]
    assert set(blobs(few)) == set(names[-3:])


def test_what_changed_before_it_is_loaded_is_loaded_and_comes_again(case: Case) -> None:
    names = many(case)
    found = left(case)
    ingest(case, node(names[0], 101, b"v2"), node(names[1], 102, b"v1", "unmirrored"), node(names[2], 103, None))
    delta = case.worker.load(found).local_caches[NODES]
    assert blobs(delta)[names[0]] == b"v2"
    assert sorted(blobs(delta)) == [names[0], *names[3:]]
    again = since(case, delta.version)
    assert (set(blobs(again)), again.gone) == ({names[0]}, [names[1], names[2]])


def test_a_list_before_it_is_loaded_leaves_it_unknown(case: Case) -> None:
    many(case)
    found = left(case)
    listed(case, "g2", 300, node("n1", 250))
    assert case.worker.load(found).local_caches[NODES] == Delta("")


def between(
    case: RedisCase, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object], after: str = "HKEYS"
) -> None:
    """Let something happen once the ids have been read, before the objects are; or ``after`` another command."""
    asked = script_runner.in_one_go

    def ask(client: redis.Redis, commands: Sequence[Any]) -> list[Any]:
        answers = asked(client, commands)
        if commands[0][0] == after:
            happens()
        return answers

    monkeypatch.setattr(script_runner, "in_one_go", ask)


def test_what_is_no_longer_mirrored_when_it_is_read_is_left_out(
    real: RedisCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = many(real)
    found = left(real)
    between(real, monkeypatch, lambda: ingest(real, node(names[1], 102, b"v1", "all"), node(names[2], 103, None)))
    assert sorted(blobs(real.worker.load(found).local_caches[NODES])) == [names[0], *names[3:]]


def test_a_list_while_it_is_read_leaves_it_unknown(real: RedisCase, monkeypatch: pytest.MonkeyPatch) -> None:
    many(real)
    found = left(real)
    between(real, monkeypatch, lambda: listed(real, "g2", 300, node("n0001", 250)))
    assert real.worker.load(found).local_caches[NODES] == Delta("")


def test_an_epoch_that_ends_while_it_is_read_is_over(real: RedisCase, monkeypatch: pytest.MonkeyPatch) -> None:
    many(real)
    found = left(real)
    between(real, monkeypatch, lambda: real.admin.delete(keys.epoch()))
    with pytest.raises(EpochOver):
        real.worker.load(found)


# -- ahead of a claim --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 3, MANY])
def test_what_is_read_ahead_is_what_a_claim_would_bring(case: Case, count: int) -> None:
    names = many(case, count)
    if names:
        ingest(case, node(names[0], 101, b"v2"), node("other", 102, b"v1", "all"))
    ahead = case.worker.local_cache(NODES)
    assert ahead._replace(changed=sorted(ahead.changed), gone=list(ahead.gone)) == since(case, "")
    assert since(case, ahead.version) == Delta(ahead.version, False, [], [])


def test_nothing_is_read_ahead_of_a_first_list(case: Case) -> None:
    opened(case)
    assert case.worker.local_cache(NODES) == Delta("")
    assert case.ingestor.stage(NODES, "g1", [node("a", 50)])
    assert case.worker.local_cache(NODES) == Delta("")
    listed(case, "g1", 100, node("a", 50))
    assert blobs(case.worker.local_cache(NODES)) == {"a": b"v1"}


def test_an_epoch_that_is_over_reads_nothing_ahead(case: Case) -> None:
    begun(case, "a")
    old = case.worker
    case.bootstrap()
    with pytest.raises(EpochOver):
        old.local_cache(NODES)


@pytest.mark.parametrize("after", ["HGET", "HKEYS"])
def test_what_changes_while_it_is_read_ahead_comes_again(
    real: RedisCase, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """Its version is older than what was read."""
    begun(real, "a", "b", "c")
    happened: list[str] = []

    def happens() -> None:
        if not happened:
            happened.append(after)
            ingest(real, node("a", 101, b"v2"), node("b", 102, None), node("d", 103))

    between(real, monkeypatch, happens, after)
    ahead = real.worker.local_cache(NODES)
    held = blobs(ahead)
    assert (held["a"], "b" in held) == (b"v2", False)
    monkeypatch.undo()
    again = since(real, ahead.version)
    assert not again.full
    held = {name: blob for name, blob in (held | blobs(again)).items() if name not in again.gone}
    assert held == {"a": b"v2", "c": b"v1", "d": b"v1"}


def test_a_list_while_it_is_read_ahead_leaves_it_unknown(real: RedisCase, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(real, "a")
    between(real, monkeypatch, lambda: listed(real, "g2", 300, node("b", 250)))
    assert real.worker.local_cache(NODES) == Delta("")
