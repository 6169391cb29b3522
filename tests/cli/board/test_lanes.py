"""Processes that come and go are told from who is there at one look and not at the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oarlock.broker.looks.hearing import LATE_MS, Hearing
from oarlock.cli.board import lanes
from oarlock.cli.board.lanes import INGESTORS, Lanes
from oarlock.cli.watch.fleet_look import FleetLook
from tests.cli.watch.looks import busy


def heard(**age_ms: int) -> FleetLook:
    """A busy fleet with these ingestors."""
    look = busy()
    ingestors = tuple(Hearing(name, age, (), {}) for name, age in age_ms.items())
    return replace(look, shards=tuple(replace(shard, ingestors=ingestors) for shard in look.shards))


def ingestors(made: Lanes) -> list[list[str | int]]:
    """[name, began_ms, gone_ms]"""
    return [[row[1], row[3], row[4]] for row in made.rows() if row[2] == INGESTORS]


def test_an_ingestor_is_there_while_it_says_what_it_hears() -> None:
    made = Lanes()
    made.see(heard(a=10, b=10), 1_000)
    assert ingestors(made) == [["a", 1_000, 0], ["b", 1_000, 0]]
    made.see(heard(a=20, b=LATE_MS + 1), 2_000)
    made.see(heard(a=20), 3_000)
    assert ingestors(made) == [["a", 1_000, 0], ["b", 1_000, 2_000]]
    made.see(heard(a=20, b=5), 4_000)
    assert ingestors(made) == [["a", 1_000, 0], ["b", 4_000, 0]]


def test_a_worker_is_missed_where_all_of_a_shard_are_shown() -> None:
    made, look = Lanes(), busy()
    made.see(look, 1_000)
    names = {row[1] for row in made.rows()}
    made.see(replace(look, workers=(), shards=tuple(replace(each, registered=2) for each in look.shards)), 2_000)
    assert [row[4] for row in made.rows()] == [0] * len(names)
    made.see(replace(look, workers=(), shards=tuple(replace(each, registered=0) for each in look.shards)), 3_000)
    assert [row[4] for row in made.rows()] == [3_000] * len(names)


def test_ingestors_are_kept_before_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "LANES_MAX", 1)
    made = Lanes()
    made.see(heard(a=1), 1_000)
    assert [row[1] for row in made.rows()] == ["a"]
