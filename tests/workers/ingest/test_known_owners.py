"""Where an ingestor looks for the orphans of owners in doubt: for each that comes it must not read all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from oarlock.broker.values.objects import Page
from oarlock.controllers.objects.model import label_selector
from oarlock.controllers.objects.selector import LabelSelector, Requirement
from oarlock.controllers.registry import WATCHED
from oarlock.workers.ingest.known_owners import ENTRIES_AT_ONCE, KnownOwners
from tests.controllers.deployment.sizes_builders import dep
from tests.workers.ingest.ingest_api import REPLICASETS


class EmptyCache:
    """Has no orphan, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Sequence[str]]] = []

    def page(self, resource: str, entries: Sequence[str], _: Any) -> Page:
        self.asked.append((resource, entries))
        return Page("7", [], None)


def noted(owners: KnownOwners, name: str, selector: LabelSelector) -> tuple[str, str]:
    owner = dep(1, name=name, selector=selector)
    assert owners.note("deployment", owner, gone=False)
    return "deployment", owner.key


def looked(owners: KnownOwners) -> list[tuple[str, Sequence[str]]]:
    cache = EmptyCache()
    owners.settle(cache)  # type: ignore[arg-type]
    assert not owners.in_doubt
    return cache.asked


@pytest.mark.parametrize(
    ("selector", "entry"),
    [
        pytest.param(label_selector({"app": "web"}), "orphan=default/app=web", id="a label"),
        pytest.param(
            label_selector({"a": "all", "b": "web"}), "orphan=default/b=web", id="of two labels that fewer owners have"
        ),
        pytest.param(label_selector({}, (Requirement("app", "Exists"),)), "orphan=default", id="none by value"),
        pytest.param(label_selector({}), None, id="it adopts nothing"),
    ],
)
def test_where_it_looks_for_one_owner(selector: LabelSelector, entry: str | None) -> None:
    owners = KnownOwners()
    noted(owners, "other", label_selector({"a": "all"}))
    owners.doubtful.add(noted(owners, "web", selector))
    assert looked(owners) == ([(REPLICASETS, [entry])] if entry else [])


def test_a_namespace_in_doubt_covers_its_owners() -> None:
    owners = KnownOwners()
    owners.doubtful.add(noted(owners, "web", label_selector({"app": "web"})))
    owners.doubt_all(WATCHED[REPLICASETS])
    assert looked(owners) == [(REPLICASETS, ["orphan=default"])]


def test_an_owner_that_is_gone_by_then_is_looked_for_no_more() -> None:
    owners = KnownOwners()
    owner = dep(1, name="web", selector=label_selector({"app": "web"}))
    owners.note("deployment", owner, gone=False)
    owners.doubtful.add(("deployment", owner.key))
    owners.note("deployment", owner, gone=True)
    assert looked(owners) == []


def test_thousands_are_looked_for_together() -> None:
    owners = KnownOwners()
    for number in range(2 * ENTRIES_AT_ONCE + 1):
        owners.doubtful.add(noted(owners, f"web-{number}", label_selector({"app": str(number)})))
    assert [len(entries) for _, entries in looked(owners)] == [ENTRIES_AT_ONCE, ENTRIES_AT_ONCE, 1]


def test_what_was_learned_since_is_in_doubt() -> None:
    owners = KnownOwners()
    first, second = (noted(owners, name, label_selector({"app": name})) for name in ("a", "b"))
    owners.doubt_since(owners.news)
    assert not owners.in_doubt
    owners.doubt_since(owners.news - 1)
    assert owners.doubtful == {second}
    assert noted(owners, "a", label_selector({"app": "other"})) == first
    owners.doubtful.clear()
    owners.doubt_since(owners.news - 1)
    assert owners.doubtful == {first}
