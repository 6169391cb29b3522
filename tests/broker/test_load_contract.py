"""Children that a claim leaves to be loaded: which, and what they are by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
import redis
from redis.exceptions import ResponseError

from oarlock.broker.connection import client as clients
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import loading, script_runner
from oarlock.broker.steps.loading import Changed, Endings, LoadMemo
from oarlock.broker.steps.script_runner import ScriptRunner
from oarlock.broker.values.claims import Batch, Claim, LoadSpec
from oarlock.broker.values.errors import BrokerBusy, BrokerUnreachable, DataDamaged, EpochOver
from oarlock.broker.values.events import Event
from oarlock.broker.values.objects import Cached
from tests.broker.broker_cases import QUEUE, Case, RedisCase, claim_reply, finish, opened
from tests.simulation.mutants import change_code

KEY, UID = "ns/web", "uid-web"
SPEC = LoadSpec(
    QUEUE, "replicasets", (("pods", "owner", "counts"), ("pods", "orphan", "wanted"), ("replicasets", "owner", "uid"))
)
READY, UNREADY, BARE = b"+r/ns\nlabels", b"+u/ns\nothers", b"-t/ns"


def child(name: str, rv: int, kind: bytes = READY, uid: str = UID) -> Event:
    return Event(f"ns/{name}", str(rv), f"uid-{name}", name.encode(), (f"owner={uid}",), (), kind=kind)


def gone(name: str, rv: int) -> Event:
    return Event(f"ns/{name}", str(rv), f"uid-{name}", None)


FOUR = (child("a", 101), child("b", 102, UNREADY), child("c", 103, BARE), child("d", 104, b""))
WHOLE = {"a": b"alabelsuid-a", "b": b"bothersuid-b", "c": b"c", "d": b"d"}


def filled(case: Case, children: Sequence[Event] = FOUR, *words: str) -> Case:
    """An owner with these words and children."""
    opened(case)
    case.ingestor.ingest("replicasets", "100", "101", [Event(KEY, "101", UID, b"owner", words)])
    case.ingestor.ingest("pods", "100", "200", children)
    return case


def claimed(case: Case, load_min: int = 4, *keys: str) -> Batch:
    case.worker.add(QUEUE, keys or [KEY])
    batch = claim_reply(case, specs=(SPEC,), load_min=load_min)
    assert isinstance(batch, Batch)
    return batch


def only(batch: Batch) -> Claim:
    (one,) = batch.claims
    return one


def ids(one: Claim) -> list[str]:
    return sorted(each.decode() for part in one.unloaded for each in part.ids)


def blobs(one: Claim) -> dict[str, bytes]:
    return {each.uid.removeprefix("uid-"): each.blob for each in one.children}


def test_what_is_loaded_is_what_the_claim_would_have_brought(case: Case) -> None:
    filled(case, FOUR, "?ns/a=1")
    orphan = Event("ns/o", "201", "uid-o", b"orphan", ("orphan=ns", "orphan=ns/a=1"))
    case.ingestor.ingest("pods", "200", "201", [orphan])
    case.ingestor.ingest("replicasets", "101", "102", [Event("ns/r", "102", "uid-r", b"below", (f"owner={UID}",))])
    whole = only(claimed(case, 0))
    finish(case, whole)
    batch = claimed(case)
    left = only(batch)
    assert (ids(left), blobs(left)) == (["ns/a", "ns/b", "ns/c", "ns/d", "ns/r"], {"o": b"orphan"})
    assert left.others == {"replicasets": []}
    one = only(case.worker.load(batch))
    assert blobs(one) == {**WHOLE, "o": b"orphan"} == blobs(whole)
    assert [each.blob for each in one.others["replicasets"]] == [b"below"]
    assert sorted(one.children) == sorted(whole.children)
    assert not one.unloaded
    assert one._replace(children=[], nonce="", now_ms=0, why="") == whole._replace(
        children=[], nonce="", now_ms=0, why=""
    )


@pytest.mark.parametrize(
    ("load_min", "left"),
    [
        pytest.param(0, 0, id="never"),
        pytest.param(1, 4, id="from one on"),
        pytest.param(4, 4, id="just so many"),
        pytest.param(5, 0, id="too few"),
    ],
)
def test_from_how_many_children_on(case: Case, load_min: int, left: int) -> None:
    one = only(claimed(filled(case), load_min))
    assert (len(ids(one)), len(one.children)) == (left, 4 - left)


def test_the_children_of_all_owners_count_but_an_owner_with_few_comes_whole(case: Case) -> None:
    filled(case, [child(f"{name}{n}", 101 + n) for n, name in enumerate("aaaa")])
    others = [Event("ns/few", "102", "uid-few", b"owner"), Event("ns/none", "103", "uid-none", b"owner")]
    case.ingestor.ingest("replicasets", "101", "103", others)
    case.ingestor.ingest("pods", "200", "202", [child("x", 201, uid="uid-few"), child("y", 202, uid="uid-few")])
    batch = claimed(case, 6, KEY, "ns/few", "ns/none")
    assert [(one.key, len(ids(one)), len(one.children)) for one in batch.claims] == [
        (KEY, 4, 0),
        ("ns/few", 2, 0),
        ("ns/none", 0, 0),
    ]
    for one in batch.claims:
        finish(case, one)
    case.ingestor.ingest("pods", "202", "203", [gone("y", 203)])
    batch = claimed(case, 5, KEY, "ns/few", "ns/none")
    assert [len(ids(one)) for one in batch.claims] == [0, 0, 0], "those of an owner with few do not count"
    assert case.worker.load(batch) == batch


def test_counts_leave_nothing_to_be_loaded(case: Case) -> None:
    one = only(claimed(filled(case, [child("a", 101)], "=1"), 1))
    assert one.counts
    assert not one.unloaded


def test_children_of_very_many_classes_come_whole(case: Case) -> None:
    def of(count: int) -> list[Event]:
        return [child(f"p{n}", 101 + n, b"+r/ns/%d\nlabels" % n) for n in range(count)]

    assert len(only(claimed(filled(case, of(33)))).children) == 33
    case.bootstrap()
    assert ids(only(claimed(filled(case, of(32)))))


def test_objects_may_be_newer_than_the_claim(case: Case) -> None:
    """One is of another class, one has gone; one that came is not seen, as if it came after the turn had looked."""
    batch = claimed(filled(case))
    case.ingestor.ingest("pods", "200", "203", [child("a", 201, UNREADY), gone("b", 202), child("e", 203)])
    one = only(case.worker.load(batch))
    assert blobs(one) == {"a": b"aothersuid-a", "c": b"c", "d": b"d"}
    assert {each.rv for each in one.children} == {"201", "103", "104"}
    assert batch.watermarks["pods"].rv == "200", "what the objects have passed for certain"


def test_an_object_that_was_let_go_is_still_seen(case: Case) -> None:
    """It counts until its owner has looked at it: else another one would be made in its place."""
    batch = claimed(filled(case))
    case.ingestor.ingest("pods", "200", "201", [Event("ns/a", "201", "uid-a", b"free", ("orphan=ns",))])
    assert blobs(only(case.worker.load(batch))) == {**WHOLE, "a": b"free"}


def test_an_object_of_another_owner_is_not_taken_for_one_of_this(case: Case) -> None:
    batch = claimed(filled(case))
    case.ingestor.ingest("pods", "200", "201", [child("a", 201, READY, "other")])
    assert blobs(only(case.worker.load(batch))) == {name: WHOLE[name] for name in "bcd"}


def test_a_list_was_committed_meanwhile(case: Case) -> None:
    """What the claim saw is swept; the objects of the list are read."""
    batch = claimed(filled(case))
    case.ingestor.stage("pods", "second", [child("a", 210), child("z", 211)])
    case.ingestor.commit_list("pods", "second", "220")
    while case.ingestor.republish():
        pass
    assert blobs(only(case.worker.load(batch))) == {"a": WHOLE["a"], "z": b"zlabelsuid-z"}


def test_an_epoch_that_is_over_loads_nothing(case: Case) -> None:
    batch = claimed(filled(case))
    old = case.worker
    case.bootstrap()
    with pytest.raises(EpochOver):
        old.load(batch)


# -- between the commands ----------------------------------------------------------------------------------------------


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], Any]], None]:
    """Let something happen after so many commands of a load. Each command reads one object."""

    def arrange(after: int, happens: Callable[[], Any]) -> None:
        def one_by_one(client: redis.Redis, commands: Sequence[Any]) -> list[Any]:
            answers = []
            for number, each in enumerate(commands):
                if number == after:
                    happens()
                answers += clients.in_one_go(client, [each])
            return answers

        monkeypatch.setattr(loading, "CHUNK", 1)
        monkeypatch.setattr(script_runner, "in_one_go", one_by_one)

    return arrange


def swept(case: Case) -> None:
    case.ingestor.stage("pods", "second", list(FOUR))
    case.ingestor.commit_list("pods", "second", "220")
    while case.ingestor.republish():
        pass


@pytest.mark.parametrize("after", range(7))
def test_a_list_that_comes_between_hides_nothing(real: RedisCase, between: Any, after: int) -> None:
    batch = claimed(filled(real))
    between(after, lambda: swept(real))
    assert blobs(only(real.worker.load(batch))) == WHOLE


@pytest.mark.parametrize("after", range(6))
def test_an_epoch_that_ends_between_hides_nothing(real: RedisCase, between: Any, after: int) -> None:
    batch = claimed(filled(real))
    between(after, real.admin.flushall)
    with pytest.raises(EpochOver):
        real.worker.load(batch)


@pytest.mark.parametrize("after", range(7))
def test_a_class_that_comes_or_goes_between_hides_nothing(real: RedisCase, between: Any, after: int) -> None:
    batch = claimed(filled(real))
    changes = [child(name, 201 + n, b"+n/ns\nnew") for n, name in enumerate("abcd")]
    between(after, lambda: real.ingestor.ingest("pods", "200", "210", changes))
    found = blobs(only(real.worker.load(batch)))
    assert set(found) == set(WHOLE)
    assert all(blob in (WHOLE[name], b"%bnewuid-%b" % (name.encode(), name.encode())) for name, blob in found.items())


def test_what_has_changed_is_read_once_more_without_a_script(
    real: RedisCase, between: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script over thousands of objects would keep Redis from all others."""
    batch = claimed(filled(real))
    changes = [child(name, 201 + n, b"+n/ns\nnew") for n, name in enumerate("abcd")]
    between(4, lambda: real.ingestor.ingest("pods", "200", "210", changes))
    monkeypatch.setattr(real.worker, "look", None)
    assert blobs(only(real.worker.load(batch))) == {name: b"%bnewuid-%b" % (2 * (name.encode(),)) for name in "abcd"}


def test_what_changes_again_is_read_in_one_step(real: RedisCase, between: Any) -> None:
    batch, versions = claimed(filled(real)), iter(range(201, 300, 10))

    def change() -> None:
        at = next(versions)
        events = [child(name, at + n, b"+n%d/ns\nnew" % at) for n, name in enumerate("abcd")]
        assert real.ingestor.ingest("pods", str(at - 1), str(at + 9), events).verdict == "OK"

    between(4, change)
    assert set(blobs(only(real.worker.load(batch)))) == set(WHOLE)
    assert next(versions) == 221, "it has changed twice"


def test_all_chunks_are_read(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "CHUNK", 3)
    batch = claimed(filled(case))
    assert blobs(only(case.worker.load(batch))) == WHOLE


def next_epoch(case: RedisCase) -> None:
    """It has begun, and a part of what there was has been swept."""
    assert isinstance(case.worker, RedisBroker)
    case.admin.set(case.worker.keys.epoch, case.epoch + 1)
    case.admin.delete(case.worker.keys.objects("pods", "first-pods"))


class Check(NamedTuple):
    """Text of a function that makes sure of something, what to put in its place, and when what comes between."""

    function: Any
    text: str
    instead: str
    after: int
    happens: Callable[[RedisCase], Any]


CHECKS = {
    "the epoch": Check(
        ScriptRunner._ask_all, "answers.pop() != str(self.epoch).encode()", "answers.pop() is self", 0, next_epoch
    ),
    "the generation": Check(loading._read, "generation == unloaded.generation", "True", 0, swept),
    "which class an object is of": Check(
        Endings.__missing__,
        "raise Changed",
        "return None",
        4,
        lambda case: case.ingestor.ingest("pods", "200", "210", [gone("a", 201)]),
    ),
    "whose class it is": Check(
        Endings.__missing__,
        " or not line.startswith(self._beginning)",
        "",
        0,
        lambda case: case.ingestor.ingest("pods", "200", "210", [child("a", 201, READY, "other"), child("b", 202)]),
    ),
    "every chunk": Check(
        LoadMemo.parse, "value for chunk in chunks for", "value for chunk in chunks[1:] for", 0, lambda case: None
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_is_missed(real: RedisCase, between: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it the answer is right, or there is none; without it something is hidden, or another's is taken."""

    def answer() -> Any:
        real.admin.flushall()
        real.bootstrap()
        batch = claimed(filled(real))
        between(check.after, lambda: check.happens(real))
        try:
            found = blobs(only(real.worker.load(batch)))
        except (EpochOver, AttributeError) as error:
            return type(error)
        return found

    check = CHECKS[name]
    right = answer()
    change_code(check.function, check.text, check.instead, monkeypatch)
    assert answer() != right


# -- what was loaded before --------------------------------------------------------------------------------------------


def value_of(name: str, rv: int = 1, kind: str = "+c") -> bytes:
    return f"{rv} uid-{name}\nowner=u #{kind}\nqueue:ns/web\n{name}".encode()


def endings(**texts: bytes) -> Endings:
    return Endings(b"owner=u", {f"+{name}".encode(): b"1 +r/ns\n" + text for name, text in texts.items()})


def parsed(memo: LoadMemo, values: Sequence[bytes], of: Endings, entry: str = "owner=u") -> list[Cached]:
    """What it finds is what there is, in chunks of which nothing is left. One more object has gone."""
    chunks = [[*values[at : at + 2], None] for at in range(0, len(values), 2)]
    found = memo.parse(entry, chunks, of)
    assert found == Cached.parse_all(values, of.__getitem__)
    assert not any(chunks)
    return found


def test_what_has_not_changed_is_not_taken_apart_again() -> None:
    memo = LoadMemo()
    a, _ = parsed(memo, [value_of("a"), value_of("b")], endings(c=b"end"))
    again, changed, new = parsed(memo, [value_of("a"), value_of("b", 2), value_of("d")], endings(c=b"end", d=b"x"))
    assert again is a
    assert changed.rv == "2"
    assert new.blob == b"dend" + b"uid-d"
    assert len(memo) == 3, "only what was loaded last is kept"
    assert parsed(memo, [], endings()) == []


def test_a_class_with_another_text_is_taken_apart_again() -> None:
    memo = LoadMemo()
    parsed(memo, [value_of("a")], endings(c=b"end"))
    assert parsed(memo, [value_of("a")], endings(c=b"other"))[0].blob == b"aotheruid-a"


def test_what_is_there_twice_is_seen_twice() -> None:
    memo = LoadMemo()
    assert len(parsed(memo, [value_of("a"), value_of("a")], endings(c=b"end"))) == 2
    assert not len(memo)


def test_a_memo_forgets_who_was_loaded_first() -> None:
    memo = LoadMemo(most=4)
    for entry in ("u", "v", "u", "w"):
        parsed(memo, [value_of(f"{entry}{n}") for n in range(2)], endings(c=b"end"), entry)
    assert (list(memo._owners), len(memo)) == (["u", "w"], 4)


def test_of_an_owner_that_is_too_large_nothing_is_kept() -> None:
    memo = LoadMemo(most=4)
    for entry in ("u", "v"):
        parsed(memo, [value_of(f"{entry}{n}") for n in range(2)], endings(c=b"end"), entry)
    parsed(memo, [value_of(f"u{n}") for n in range(5)], endings(c=b"end"), "u")
    assert (list(memo._owners), len(memo)) == (["v"], 2)
    with pytest.raises(Changed):
        memo.parse("u", [[value_of(f"u{n}") for n in range(5)]], endings())


# -- what no script of ours wrote --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda admin, objects, summary: admin.hset(objects, "ns/a", "no object"), id="no object"),
        pytest.param(lambda admin, objects, summary: admin.set(summary, "x"), id="no hash"),
        pytest.param(lambda admin, objects, summary: admin.delete(summary), id="classes without texts"),
        pytest.param(
            lambda admin, objects, summary: [admin.hset(summary, each, "x") for each in admin.hkeys(summary)],
            id="another text",
        ),
    ],
)
def test_damaged_data_end_the_epoch(real: RedisCase, damage: Any) -> None:
    batch = claimed(filled(real))
    worker = real.worker
    assert isinstance(worker, RedisBroker)
    place = only(batch).unloaded[0]
    damage(real.admin, worker.keys.objects(*place[:2]), worker.keys.summary(*place[:3]))
    with pytest.raises(DataDamaged):
        worker.load(batch)
    assert real.admin.get(worker.keys.epoch) is None


@pytest.mark.parametrize("text", [b"", b"x +r/ns\nlabels", b"1 r/ns\nlabels", b"1"])
def test_a_text_that_no_script_writes_is_no_ending(text: bytes) -> None:
    with pytest.raises(ValueError, match="text of a class"):
        Endings(b"owner=u", {b"+c": text})[b"owner=u #+c"]


@pytest.mark.parametrize("line", [b"owner=u #+d", b"owner=v #+c"])
def test_a_class_that_is_not_there_has_changed(line: bytes) -> None:
    with pytest.raises(Changed):
        Endings(b"owner=u", {b"+c": b"1 +r/ns\nlabels"})[line]


def test_a_busy_server_leaves_the_keys_taken(real: RedisCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a claim BrokerBusy would mean that nothing was taken."""

    def busy(*_: Any) -> Any:
        raise ResponseError("BUSY Redis is busy running a script")

    batch = claimed(filled(real))
    monkeypatch.setattr(script_runner, "in_one_go", busy)
    with pytest.raises(BrokerUnreachable) as raised:
        real.worker.load(batch)
    assert not isinstance(raised.value, BrokerBusy)
