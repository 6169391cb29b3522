"""Who is deaf, and whether anything is missed by that, in sentences."""

from __future__ import annotations

import pytest

from oarlock.broker.looks.hearing import Hearing
from oarlock.cli.look.hearings import hearing_lines, unheard

WELL = Hearing("i-1", 3_000, (), {"pods": 3_000})
DEAF = Hearing("i-2", 1_000, ("nodes", "pods"), {"nodes": 80_000, "pods": 95_000})
GONE = Hearing("i-3", 30_000, (), {"pods": 30_000})


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        ([WELL], []),
        ([], []),
        ([GONE, WELL], ["i-3 has said nothing for 30.0s: it hangs, was stopped or has died"]),
        (
            [WELL, DEAF],
            [
                "i-2 is deaf: it hears nothing of nodes, pods for 1m35s; another ingestor hears it, so nothing is"
                " missed: look at its way to the API server, or restart it"
            ],
        ),
        (
            [DEAF],
            [
                "i-2 is deaf: it hears nothing of nodes, pods for 1m35s; nobody hears it, and what changes of nodes,"
                " pods is not seen: look at the API server and the way to it, then restart the ingestor"
            ],
        ),
    ],
    ids=["all is well", "none", "gone", "one of two", "the only one"],
)
def test_lines(found: list[Hearing], lines: list[str]) -> None:
    assert hearing_lines(found) == lines


def test_one_that_has_gone_hears_nothing_for_the_others() -> None:
    assert unheard("pods", [DEAF, GONE]) == ["i-2"]
    assert unheard("pods", [DEAF, WELL]) == []
    assert unheard("pods", []) == []
