"""The page on Redis keys names every key, and nothing else."""

from pathlib import Path

from broker import keys

PAGE = Path(__file__).parents[2] / "docs" / "redis-keys.md"


def test_the_page_has_a_row_for_every_key() -> None:
    rows = [line.split("|")[1].strip().strip("`") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [spec.pattern for spec in keys.TABLE]
