"""What an ingestor says it hears: kept by the script, read back with its age."""

from __future__ import annotations

import pytest

from oarlock.broker.looks.hearing import LATE_MS, Hearing, hearing_of, told
from oarlock.broker.looks.inspect import Inspector
from tests.broker.broker_cases import RedisCase


@pytest.mark.real
def test_each_ingestor_has_its_last_word_and_the_silent_ones_go(real: RedisCase) -> None:
    def found() -> dict[str, Hearing]:
        inspector = Inspector(real.admin, real.epoch, now_ms=real.now_ms)
        return {each.ingestor: each for each in inspector.hearings()}

    real.ingestor.report("one", told([], {"pods": 10}))
    real.ingestor.report("two", told([], {"pods": 20}))
    real.advance(30_000)
    real.ingestor.report("two", told(["pods"], {"pods": 80_000, "nodes": 5}))
    assert found()["one"] == Hearing("one", 30_000, (), {"pods": 30_010})
    assert found()["two"] == Hearing("two", 0, ("pods",), {"pods": 80_000, "nodes": 5})
    assert [each.late for each in found().values()] == [True, False]
    real.advance(30_001)
    assert "one" in found()
    real.ingestor.report("two", told([], {"pods": 5}))
    assert set(found()) == {"two"}
    real.ingestor.report("two", "")
    assert found() == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at_ms=900 pods=5 nodes=-1", Hearing("i", 100, (), {"pods": 105, "nodes": -1})),
        ("at_ms=2000 deaf=a,b a=1", Hearing("i", 0, ("a", "b"), {"a": 1})),
        ("rubbish deaf= pods=x", Hearing("i", LATE_MS + 1, (), {})),
        ("at_ms=\u00b2 pods=\u00b2", Hearing("i", LATE_MS + 1, (), {})),
        (f"at_ms={'9' * 5_000} pods={'9' * 5_000}", Hearing("i", LATE_MS + 1, (), {})),
        ("", Hearing("i", LATE_MS + 1, (), {})),
    ],
    ids=["heard", "a clock that went back", "somebody else wrote there", "no digit", "too many digits", "nothing"],
)
def test_words_are_read(text: str, expected: Hearing) -> None:
    assert hearing_of("i", text, 1_000) == expected


def test_an_ingestor_without_news_is_late() -> None:
    assert not hearing_of("i", "at_ms=1000", 1_000 + LATE_MS).late
    assert hearing_of("i", "at_ms=1000", 1_001 + LATE_MS).late


@pytest.mark.real
def test_another_type_in_its_place_is_written_over(real: RedisCase) -> None:
    """What is there for people alone ends no epoch."""
    name = real.worker.keys.of("ingestors")  # type: ignore[attr-defined]
    real.admin.set(name, "somebody else's")
    real.ingestor.report("one", "pods=5")
    assert real.admin.hgetall(name) == {b"one": f"at_ms={real.now_ms()} pods=5".encode()}
