"""Which versions are hinted at, and that the table in the documentation is the one in use."""

from __future__ import annotations

import re

import pytest

from oarlock.broker.connection import fitness
from tests import ROOT

PAGE = ROOT / "docs" / "redis.md"


@pytest.mark.parametrize(
    ("told", "hinted"),
    [
        ({"redis_version": "6.2.5"}, True),
        ({"redis_version": "6.2.19"}, True),
        ({"redis_version": "6.2.20"}, False),
        ({"redis_version": "7.0.15"}, True),  # Debian 12's; has the fix since deb12u6 all the same
        ({"redis_version": "7.2.10"}, True),
        ({"redis_version": "7.2.11"}, False),
        ({"redis_version": "7.4.5"}, True),
        ({"redis_version": "7.4.9"}, False),
        ({"redis_version": "8.0.3"}, True),
        ({"redis_version": "8.0.4"}, False),
        ({"redis_version": "8.2.1"}, True),
        ({"redis_version": "8.2.2"}, False),
        ({"redis_version": "8.4.0"}, False),
        ({"redis_version": "10.0.0"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "7.2.10"}, True),
        ({"redis_version": "7.2.4", "valkey_version": "7.2.11"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.1"}, True),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.6"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "8.1.3"}, True),
        ({"redis_version": "7.2.4", "valkey_version": "8.1.4"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "9.0.0"}, False),
        ({"redis_version": "unstable"}, False),
        ({}, False),
    ],
)
def test_who_is_hinted_at(told: dict[str, str], hinted: bool) -> None:
    hint = fitness.patch_hint(told)
    assert bool(hint) is hinted
    assert told.get("valkey_version", told.get("redis_version", "")) in hint or not hinted
    assert "\n" not in hint


def test_the_table_in_the_documentation() -> None:
    text = PAGE.read_text().partition("## Patch levels")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (Redis|Valkey) \| ([0-9., ]+) \|", text, flags=re.MULTILINE)
    table = {name: tuple(tuple(map(int, each.split("."))) for each in versions.split(", ")) for name, versions in rows}
    assert table == dict(fitness.FIXED)
