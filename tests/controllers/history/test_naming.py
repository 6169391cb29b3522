"""Hashes and names of revisions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.controllers.history.model import fnv32a, revision_hash, revision_name
from oarlock.controllers.objects.selector import label_selector


@pytest.mark.parametrize(
    ("data", "value"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968), (b"\x00", 0x050C5D1F)]
)
def test_published_values_of_fnv(data: bytes, value: int) -> None:
    assert fnv32a(data) == value


def test_digits_become_letters_that_form_no_words() -> None:
    assert fnv32a(b"a") == 3826002220
    assert revision_hash("a", None) == "7d6b446664"


def test_the_collision_count_is_eight_bytes() -> None:
    assert revision_hash("d", 258) == revision_hash("d\x02\x01\x00\x00\x00\x00\x00\x00", None)


@given(st.text(alphabet="0123456789abcdef", min_size=64, max_size=64))
def test_every_count_has_another_hash(digest: str) -> None:
    """None, 0, 1, ...: FNV of texts that differ in one byte alone never collides."""
    hashes = {revision_hash(digest, count) for count in range(256)}
    assert len(hashes) == 256
    assert revision_hash(digest, None) not in {revision_hash(digest, count) for count in (0, 1, 2)}
    assert all(re.fullmatch("[4-9bcdf]{1,10}", each) for each in hashes)
    assert not label_selector(dict.fromkeys(["h"], hashes.pop())).error


def test_the_name() -> None:
    assert revision_name("web", "7c6b") == "web-7c6b"
    assert len(revision_name("w" * 253, "7c6b")) == 258
