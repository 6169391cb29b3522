"""docs/troubleshoot.md has what `make planted` follows: a section a fault, commands, and a place on the board."""

from __future__ import annotations

import pytest

from oarlock.cli.top.tabs import TABS
from tests.planted.__main__ import FAULTS
from tests.planted.page import PAGE, sections

TEXT = PAGE.read_text()


@pytest.mark.parametrize("section", sorted({fault.section for faults in FAULTS.values() for fault in faults}))
def test_a_section_says_all_ways_to_look(section: str) -> None:
    found = sections(TEXT)[section]
    assert found.cli
    assert found.redis
    assert found.board.tabs
    assert set(found.board.tabs) <= {tab.title for tab in TABS}
    where = [line for line in found.cli if found.board.key and found.board.key in line]
    assert where or not found.board.key, "the page of the key that `oarlock explain` is asked about"


def test_a_section_without_a_place_on_the_board_is_named() -> None:
    without = TEXT.replace('On the board: the tab "Namespaces"', 'It is the tab "Namespaces"')
    with pytest.raises(ValueError, match="The queue is long: one namespace fills it: no paragraph begins with"):
        sections(without)
