"""What objects have in common is kept once, as long as one of them names it."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.broker.values.errors import DataDamaged
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Verdict
from tests.broker.broker_cases import QUEUE, Case, RedisCase, claim, claim_one, finish, opened

OWNERS = "replicasets"
BIG, SMALL = ("b19", b"B" * 4_000), ("51a11", b"s")


def owner(name: str, rv: int, apart: tuple[str, bytes] | None, blob: bytes | None = b"owner") -> Event:
    return Event(f"ns/{name}", str(rv), f"uid-{name}", blob, ("all",), (f"{QUEUE}:ns/{name}",), apart=apart)


def listed(case: Case, generation: str, rv: int, *events: Event) -> None:
    assert case.ingestor.stage(OWNERS, generation, events)
    assert case.ingestor.commit_list(OWNERS, generation, str(rv)).verdict == "OK"
    while case.ingestor.republish(1):
        pass


def kept(case: Case) -> dict[str, list[str]]:
    """Generation -> names of what is kept."""
    found: dict[str, Any] = case.state().get("apart", {})
    return {of.partition("/")[2]: sorted(parts) for of, parts in found.items()}


def changed(case: Case, rv: int, *events: Event) -> None:
    assert case.ingestor.ingest(OWNERS, "100", str(rv), events).verdict == "OK"


def brought(case: Case, *names: str) -> list[bytes]:
    case.worker.add(QUEUE, [f"ns/{name}" for name in names])
    found = {}
    for one in (*claim(case), *claim(case)):
        found[one.key] = one.owner.apart if one.owner is not None else b""
        finish(case, one, Verdict.OK)
    return [found[f"ns/{name}"] for name in names]


def test_a_claim_brings_it(case: Case) -> None:
    opened(case)
    listed(case, "second", 110, owner("a", 101, BIG), owner("b", 102, BIG), owner("c", 103, None))
    assert kept(case) == {"second": ["b19"]}
    assert brought(case, "a", "b", "c") == [BIG[1], BIG[1], b""]
    assert [each.apart for each in case.worker.look(OWNERS, ids=["ns/a"])[1]] == [b""], "only a claim does"


def test_it_is_found_by_its_name(case: Case) -> None:
    opened(case)
    listed(case, "second", 110, owner("a", 101, BIG))
    assert case.worker.look_apart(OWNERS, BIG[0]) == BIG[1]
    assert case.worker.look_apart(OWNERS, SMALL[0]) == b""
    changed(case, 120, owner("a", 120, SMALL))
    assert case.worker.look_apart(OWNERS, BIG[0]) == b""
    assert case.worker.look_apart(OWNERS, SMALL[0]) == SMALL[1]


def test_it_goes_with_the_last_that_names_it(case: Case) -> None:
    opened(case)
    changed(case, 110, owner("a", 101, BIG), owner("b", 102, BIG))
    changed(case, 120, owner("a", 120, SMALL))
    assert kept(case) == {f"first-{OWNERS}": ["51a11", "b19"]}
    changed(case, 130, owner("a", 129, SMALL, b"its status has changed"), owner("b", 130, BIG, None))
    assert kept(case) == {f"first-{OWNERS}": ["51a11"]}
    assert brought(case, "a") == [SMALL[1]]
    changed(case, 140, owner("a", 131, None), owner("b", 140, BIG))
    assert kept(case) == {f"first-{OWNERS}": ["b19"]}, "a is there still, with nothing apart"


def test_a_batch_may_be_repeated(case: Case) -> None:
    """By another ingestor, from before, and when nobody names it any more."""
    opened(case)
    batch = [owner("a", 101, BIG), owner("a", 102, SMALL), owner("b", 103, SMALL)]
    changed(case, 110, *batch)
    before = case.state()
    assert case.ingestor.ingest(OWNERS, "100", "110", batch).skipped == 3
    assert case.state() == before
    assert kept(case) == {f"first-{OWNERS}": ["51a11"]}
    changed(case, 120, *batch, owner("a", 119, None, None), owner("b", 120, None, None))
    assert kept(case) == {}


def test_a_list_brings_its_own_and_the_old_ones_go(case: Case) -> None:
    opened(case)
    listed(case, "second", 110, owner("a", 101, BIG), owner("b", 102, SMALL))
    case.ingestor.stage(OWNERS, "third", [owner("a", 105, SMALL)])
    assert kept(case) == {"second": ["51a11", "b19"], "third": ["51a11"]}
    assert brought(case, "a") == [BIG[1]], "nobody reads what is staged"
    case.ingestor.commit_list(OWNERS, "third", "120")
    assert brought(case, "a") == [SMALL[1]]
    while case.ingestor.republish(1):
        pass
    assert kept(case) == {"third": ["51a11"]}


def test_it_counts_for_the_size_of_a_batch(case: Case) -> None:
    opened(case)
    listed(case, "second", 110, *(owner(name, 101, BIG) for name in "abc"))
    case.worker.add(QUEUE, ["ns/a", "ns/b", "ns/c"])
    assert len(claim(case, bytes_max=9_000)) == 2


@pytest.mark.real
def test_one_that_is_gone_is_damage(real: RedisCase) -> None:
    opened(real)
    listed(real, "second", 110, owner("a", 101, BIG))
    broker: Any = real.worker
    real.admin.hdel(broker.keys.base + f"apart:{OWNERS}:second", "b19")
    broker.add(QUEUE, ["ns/a"])
    with pytest.raises(DataDamaged):
        claim_one(real)
