"""What a claim reads beside what its owner controls: where the owner's own words send it, and no more than it must."""

from __future__ import annotations

import pytest

from oarlock.broker.values.events import Event
from tests.broker.broker_cases import QUEUE, Case, claim_one, finish, opened

OWNERS = "replicasets"
KEY = "ns/web"


def orphan(name: str, rv: int, *places: str, namespace: str = "ns") -> Event:
    entries = tuple(f"orphan={each}" for each in (namespace, *places))
    return Event(f"{namespace}/{name}", str(rv), f"uid-{name}", name.encode(), entries)


def owner(rv: int, *words: str) -> Event:
    return Event(KEY, str(rv), "uid-web", b"owner", words, (f"{QUEUE}:{KEY}",))


def filled(case: Case) -> Case:
    """Three with a=1, one of them with b=2 too, one with the name of a pod of ours, a bare one, one abroad."""
    opened(case)
    events = [
        *(orphan(f"a{i}", 101 + i, "ns/a=1") for i in range(2)),
        orphan("ab", 103, "ns/a=1", "ns/b=2"),
        orphan("web-bcdfg", 104, "ns/a=3", "ns/~web-"),
        orphan("bare", 105),
        orphan("abroad", 106, "other/a=1", namespace="other"),
    ]
    case.ingestor.ingest("pods", "100", "110", events)
    return case


def found(case: Case) -> list[str]:
    case.worker.add(QUEUE, [KEY])
    one = claim_one(case)
    finish(case, one)
    return sorted(child.blob.decode() for child in one.children)


@pytest.mark.parametrize(
    ("words", "children"),
    [
        pytest.param(["?ns/a=1"], ["a0", "a1", "ab"], id="by a label"),
        pytest.param(["?ns/a=1", "?ns/b=2"], ["ab"], id="of two the one that brings fewer"),
        pytest.param(["?ns/b=2", "?ns/a=1"], ["ab"], id="in whatever order"),
        pytest.param(["?ns/a=1", "?ns/c=9"], [], id="nothing is fewest"),
        pytest.param(["?ns/a=3|ns/b=2"], ["ab", "web-bcdfg"], id="either place"),
        pytest.param(["?ns/a=1", "?ns/a=3|ns/b=2"], ["ab", "web-bcdfg"], id="two together are two"),
        pytest.param(["?ns"], ["a0", "a1", "ab", "bare", "web-bcdfg"], id="all of the namespace"),
        pytest.param(["+ns/~web-"], ["web-bcdfg"], id="by name alone"),
        pytest.param(["?ns/b=2", "+ns/~web-"], ["ab", "web-bcdfg"], id="by name on top"),
        pytest.param(["?ns/a=3", "+ns/~web-"], ["web-bcdfg"], id="each once"),
        pytest.param(["a+b", "all", "owner=u?x"], [], id="an index entry is no such word"),
        pytest.param([], [], id="no words"),
    ],
)
def test_what_is_read(case: Case, words: list[str], children: list[str]) -> None:
    filled(case)
    case.ingestor.ingest(OWNERS, "100", "200", [owner(200, *words)])
    assert found(case) == children
    indexed = sorted(each.split("/", 2)[2] for each in case.state()["index"] if each.startswith(OWNERS))
    assert indexed == sorted(word for word in words if word[0] not in "?+")


def test_the_order_of_events_is_all_the_same(case: Case) -> None:
    """An orphan before its owner or after; either may change its labels; a list may put all of them there anew."""
    filled(case)
    case.ingestor.ingest(OWNERS, "100", "200", [owner(200, "?ns/a=1")])
    case.ingestor.ingest("pods", "110", "120", [orphan("late", 120, "ns/a=1")])
    assert found(case) == ["a0", "a1", "ab", "late"]
    case.ingestor.ingest("pods", "120", "130", [orphan("a0", 129), orphan("bare", 130, "ns/a=1")])
    assert found(case) == ["a1", "ab", "bare", "late"]
    case.ingestor.ingest(OWNERS, "200", "210", [owner(210, "?ns/b=2")])
    assert found(case) == ["ab"]
    case.ingestor.stage("pods", "second", [orphan("a1", 125, "ns/b=2"), orphan("new", 131, "ns/b=2")])
    case.ingestor.commit_list("pods", "second", "140")
    assert found(case) == ["a1", "new"]
    while case.ingestor.republish(1):
        pass
    case.ingestor.ingest("pods", "140", "150", [Event("ns/new", "150", "uid-new", None)])
    assert found(case) == ["a1"]
    case.ingestor.ingest("pods", "150", "160", [Event("ns/a1", "160", "uid-a1", b"a1", ("owner=someone",))])
    assert found(case) == []
