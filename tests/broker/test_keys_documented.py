"""The page on Redis keys names every key and every field of a record, and nothing else."""

from dataclasses import fields

from oarlock.broker import keys
from oarlock.broker.expectations import Expectations
from tests import ROOT

PAGE = ROOT / "docs" / "redis-keys.md"


KEYS, _, RECIPES = PAGE.read_text().partition("\n## Recipes\n")


def names(text: str) -> list[str]:
    """The first cells of the rows of its tables."""
    return [line.split("|")[1].strip().strip("`") for line in text.splitlines() if line.startswith("| `")]


def test_the_page_has_a_row_for_every_key() -> None:
    assert names(KEYS) == [spec.pattern for spec in keys.TABLE]


def test_the_page_has_a_row_for_every_field_of_a_record() -> None:
    documented = dict.fromkeys(names(RECIPES.partition("\n## Of a keyed queue\n")[0]))
    found = Expectations.parse([text for field in documented for text in (field, "pending uid=u")])
    assert found is not None
    empty = [each.name for each in fields(Expectations) if not getattr(found, each.name)]
    assert empty == ["pending_others", "hints"], "one of each kind, and none is unknown"
