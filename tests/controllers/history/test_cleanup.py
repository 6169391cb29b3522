"""Which old revisions go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.controllers.history.decide import prunable
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision
from tests.controllers.builders import WEB, with_fields
from tests.controllers.history.history_builders import revision


def old(*words: str) -> list[ControllerRevision]:
    """`3` number 3 with the label h3; `3=h1` with another label; `3=` without one; `3!` being deleted already."""
    revisions = []
    for word in words:
        number, labelled, label = word.rstrip("!").partition("=")
        if not labelled:
            label = f"h{number}"
        labels = WEB | {HASH_LABEL: label} if label else dict(WEB)
        revisions.append(revision(int(number), "v1", number, labels, deleting_ms=int(word.endswith("!"))))
    return revisions


@pytest.mark.parametrize(
    ("words", "live", "limit", "gone"),
    [
        pytest.param("1 2 3", "", 10, "", id="fewer than the limit"),
        pytest.param("1 2 3", "", 3, "", id="as many as the limit"),
        pytest.param("3 1 2", "", 1, "1 2", id="the lowest numbers first"),
        pytest.param("1 2 3", "", 0, "1 2 3", id="limit 0 keeps the current one alone"),
        pytest.param("1 2 3", "h2", 0, "1 3", id="limit 0 keeps the living too"),
        pytest.param("1 2 3", "h1 h2 h3", 0, "", id="all live"),
        pytest.param("1 2 3", "h1", 2, "2", id="a living one is passed over, not counted"),
        pytest.param("1 2 3", "h1 h2", 2, "3", id="even so that a younger one goes"),
        pytest.param("1 2=h1 3", "h1", 0, "3", id="one label protects both that bear it"),
        pytest.param("1= 2", "", 1, "1=", id="without a label"),
        pytest.param("1= 2", " ", 1, "1=", id="pods without a label protect none"),
        pytest.param("1! 2 3 4", "", 2, "2", id="what is being deleted counts as gone"),
        pytest.param("1! 2 3", "", 2, "", id="and is not deleted again"),
    ],
)
def test_prunable(words: str, live: str, limit: int, gone: str) -> None:
    hashes = {""} if live == " " else set(live.split())
    assert prunable(old(*words.split()), hashes, limit) == tuple(old(*gone.split()))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.booleans()), max_size=8),
    st.sets(st.sampled_from("abc")),
    st.integers(0, 5),
)
def test_what_stays(made: list[tuple[int, str, bool]], live: set[str], limit: int) -> None:
    revisions = [
        with_fields(revision(number, "v1", f"r{at}", WEB | {HASH_LABEL: label}), deleting_ms=int(deleting))
        for at, (number, label, deleting) in enumerate(made)
    ]
    gone = prunable(revisions, live, limit)
    left = [each for each in revisions if each not in gone and not each.deleting_ms]
    assert not any(each.hash in live or each.deleting_ms for each in gone)
    assert len(left) >= min(limit, len(left) + len(gone)), "never fewer than the limit allows"
    assert len(left) <= limit or all(each.hash in live for each in left)
    assert prunable(left, live, limit) == (), "once is enough"
    free = [each.revision for each in left if each.hash not in live]
    assert not gone or all(each.revision <= min(free, default=9) for each in gone), "the oldest go"
