"""Slot names."""

import math
import re
from itertools import islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oarlock.controllers.pods.slots import ALPHABET, SLOTS, Slots, name_prefix, slots_of
from tests.controllers.builders import OTHER_UID, UID, WEB_SLOTS
from tests.controllers.pod_names import slot_index, slot_name

uids = st.uuids().map(str)
indices = st.integers(0, SLOTS - 1)
label = st.from_regex(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
owner_names = st.lists(label, min_size=1, max_size=4).map(".".join)
POD_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def test_alphabet_is_the_name_generators():
    """27 symbols, no vowels and nothing that could be misread."""
    assert ALPHABET == "bcdfghjklmnpqrstvwxz2456789"
    assert SLOTS == 27**5


@given(owner_names, uids, indices)
@example("w" * 57, UID, 0)
@example("w" * 58, UID, 1)
@example("a.b-c." * 41 + "d", UID, 2)
def test_names_look_generated(owner, uid, index):
    """At most 63 characters; the prefix a generated name would have, then five of the alphabet; a legal pod
    name.
    """
    pod_name = slot_name(owner, uid, index)
    assert len(pod_name) <= 63
    assert pod_name[:-5] == f"{owner}-"[:58]
    assert set(pod_name[-5:]) <= set(ALPHABET)
    assert POD_NAME.fullmatch(pod_name)


@given(owner_names, uids, indices)
def test_names_can_be_read_back(owner, uid, index):
    """The index is recovered from the name, so no two slots of an owner share one."""
    assert slot_index(owner, uid, slot_name(owner, uid, index)) == index


@given(uids, indices, indices)
def test_names_are_injective(uid, i, j):
    """Two slots of one owner never share a name, also where the owner's name is cut."""
    for owner in ("web", "w" * 80):
        assert (slot_name(owner, uid, i) == slot_name(owner, uid, j)) == (i == j)


@given(uids)
def test_the_multiplier_is_invertible(uid):
    """Without a common divisor with 27^5 the map is a permutation of all slots."""
    slots = Slots("web", uid)
    assert math.gcd(slots._a, SLOTS) == 1
    assert 0 < slots._a < SLOTS


def test_first_three_thousand_names_of_twenty_owners_differ():
    """Injectivity over a range, by brute force."""
    for n in range(20):
        names = list(islice(Slots("web", f"uid-{n}").free(()), 3000))
        assert len(set(names)) == 3000


def test_names_of_a_successor_mostly_differ():
    """An owner deleted and created again under the same name has other names: one in ten thousand may
    coincide.
    """
    first = {n for uid in range(50) for n in islice(Slots("web", f"old-{uid}").free(()), 20)}
    second = {n for uid in range(50) for n in islice(Slots("web", f"new-{uid}").free(()), 20)}
    assert len(first & second) <= 2
    assert set(islice(Slots("web", UID).free(()), 200)).isdisjoint(islice(Slots("web", OTHER_UID).free(()), 200))


@pytest.mark.parametrize(
    "foreign",
    ["", "web-", "web-bbbb", "web-bbbbbb", "wex-bbbbb", "web-bbbba", "web-BBBBB", "web-bbb1b", "web-x-bbbbb"],
)
def test_other_names_are_no_slots(foreign):
    """Another prefix, length or alphabet: None, not an error."""
    assert slot_index("web", UID, foreign) is None


@pytest.mark.parametrize("index", [-1, SLOTS])
def test_indices_have_bounds(index):
    """No silent wrap-around, which would break injectivity."""
    with pytest.raises(IndexError):
        slot_name("web", UID, index)


@given(st.sets(st.integers(0, 30)), st.integers(0, 20))
def test_free_names_come_lowest_first(taken, count):
    """Exactly the lowest indices that are not taken, in order."""
    found = [WEB_SLOTS.index_of(n) for n in islice(WEB_SLOTS.free({WEB_SLOTS.name(i) for i in taken}), count)]
    assert found == [i for i in range(60) if i not in taken][:count]


def test_ordered_by_index():
    """Held names are taken by index; what is no slot name comes last."""
    names = [WEB_SLOTS.name(i) for i in (9, 2, 5)]
    assert WEB_SLOTS.ordered(["zzz", *names, "aaa"]) == [*(WEB_SLOTS.name(i) for i in (2, 5, 9)), "aaa", "zzz"]


def test_names_never_change():
    """Processes of different versions must agree: these names are a contract, like a file format."""
    uid = "00000000-0000-4000-8000-000000000000"
    assert [slot_name("web", uid, i) for i in (0, 1, 2, SLOTS - 1)] == [
        "web-jfx9q", "web-tr7v5", "web-77fkh", "web-62rmd",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("owner", "prefix"),
    [
        pytest.param("web", "web-", id="a legal name"),
        pytest.param("a", "a-", id="one character"),
        pytest.param("w" * 253, "w" * 253 + "-", id="the longest legal name"),
        pytest.param("w" * 254, "w" * 254, id="too long"),
        pytest.param("Web", "Web", id="not a legal prefix: the bare name"),
        pytest.param("web.", "web.-", id="the last two characters are not judged"),
        pytest.param("web_x.y", "web_x.y", id="an illegal character"),
    ],
)
def test_prefix(owner, prefix):
    """GenerateName."""
    assert name_prefix(owner) == prefix


def test_owners_are_cached():
    """The same owner is not hashed twice in a turn."""
    assert slots_of("web", UID) is slots_of("web", UID)
