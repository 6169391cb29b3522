"""Pages: all that is under an index entry, some of it a call, whatever comes and goes meanwhile."""

from __future__ import annotations

import random
import secrets

import pytest

from oarlock.broker.values.events import Event
from oarlock.broker.values.objects import PAGE, Page, PageLimits, PageMark
from tests.broker.broker_cases import Case, opened

PODS = "pods"
ENTRY = ("owner=u1",)


def pod(i: int, rv: int, blob: bytes | None = b"p" * 100, entries: tuple[str, ...] = ENTRY) -> Event:
    return Event(f"ns/p{i}", str(rv), f"uid-{i}", blob, () if blob is None else entries)


def filled(case: Case, count: int, blob: bytes = b"p" * 100) -> Case:
    """So many pods under the entry, at watermark 1000."""
    opened(case)
    for at in range(0, count, 500):
        events = [pod(i, 101 + i // 500, blob) for i in range(at, min(at + 500, count))]
        assert case.ingestor.ingest(PODS, "100", "1000" if at + 500 >= count else "100", events).verdict == "OK"
    return case


def taken(page: Page | None) -> Page:
    assert page is not None
    return page


def walk(case: Case, entries: tuple[str, ...] = ENTRY, limits: PageLimits = PAGE) -> list[Page]:
    pages = [taken(case.worker.page(PODS, entries, limits=limits))]
    while pages[-1].mark is not None:
        pages.append(taken(case.worker.page(PODS, entries, pages[-1].mark, limits)))
    return pages


def ids(pages: list[Page]) -> list[str]:
    return sorted(each.uid for page in pages for each in page.objects)


def wanted(count: int) -> list[str]:
    return sorted(f"uid-{i}" for i in range(count))


@pytest.mark.parametrize("count", [0, 1, 130, 1_300])
def test_every_object_is_in_one_page(case: Case, count: int) -> None:
    """While nothing changes, exactly once. 130 and more are another encoding of a hash in Redis than a few are."""
    pages = walk(filled(case, count), limits=PageLimits(count_max=100))
    assert ids(pages) == wanted(count)
    assert {page.watermark for page in pages} == {"1000" if count else "100"}


def test_a_page_is_bounded_by_count(case: Case) -> None:
    pages = walk(filled(case, 1_300), limits=PageLimits(count_max=100))
    assert len(pages) >= 11
    assert max(len(page.objects) for page in pages) <= 116


@pytest.mark.parametrize("count", [60, 400])
def test_a_page_is_bounded_by_bytes(case: Case, count: int) -> None:
    """Also where Redis gives the members of a small hash all at once."""
    pages = walk(filled(case, count, b"p" * 4_000), limits=PageLimits(bytes_max=100_000))
    assert ids(pages) == wanted(count)
    assert max(sum(len(each.blob) for each in page.objects) for page in pages) <= 100_000 + 16 * 4_000


def test_many_entries_are_one_walk(case: Case) -> None:
    opened(case)
    events = [pod(i, 101 + i, entries=(f"orphan=ns{i % 7}", "node=a")) for i in range(50)]
    case.ingestor.ingest(PODS, "100", "200", events)
    entries = tuple(f"orphan=ns{i}" for i in range(9))
    assert ids(walk(case, entries)) == ids(walk(case, entries, limits=PageLimits(count_max=1))) == wanted(50)
    assert len(walk(case, entries)) == 1
    assert len(taken(case.worker.page(PODS, ("node=a", "orphan=ns1"))).objects) == 50, "each once"
    assert walk(case, ()) == [Page("200", [], None)]


def test_a_page_of_another_generation_is_refused(case: Case) -> None:
    first = taken(filled(case, 300).worker.page(PODS, ENTRY, limits=PageLimits(count_max=100)))
    assert first.mark is not None
    case.ingestor.stage(PODS, "second", [pod(i, 1_001) for i in range(3)])
    case.ingestor.commit_list(PODS, "second", "2000")
    assert case.worker.page(PODS, ENTRY, first.mark) is None
    assert ids(walk(case)) == wanted(3)


def test_what_is_never_listed_has_no_watermark(case: Case) -> None:
    assert case.worker.page("things", ["all"]) == Page("", [], None)


def test_what_stays_is_found_whatever_comes_and_goes(case: Case) -> None:
    """And what is found of the rest stood there at the first page or later."""
    number = secrets.randbits(32)
    print(f"seed {number}")
    chance = random.Random(number)
    filled(case, 600)
    living, rv = set(range(600)), 1_000
    stayed, ever = set(living), set(living)
    found: set[str] = set()
    mark: PageMark | None = None
    for _ in range(200):
        page = taken(case.worker.page(PODS, ENTRY, mark, PageLimits(count_max=20)))
        found |= {each.uid for each in page.objects}
        mark = page.mark
        if mark is None:
            break
        events = []
        for _ in range(chance.randrange(40)):
            i, rv = chance.randrange(900), rv + 1
            gone = i in living and chance.random() < 0.6
            events.append(pod(i, rv, None if gone else b"new"))
            living = living - {i} if gone else living | {i}
            stayed, ever = stayed & living, ever | living
        case.ingestor.ingest(PODS, str(rv - len(events)), str(rv), events)
    assert mark is None, "it ends"
    assert {f"uid-{i}" for i in stayed} <= found <= {f"uid-{i}" for i in ever}
