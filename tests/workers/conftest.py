"""Every test here has a Redis and processes of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.fleet_rig import Rig


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """``make_rig(turn_limit_ms=1000, ...)``: a rig with these settings."""
    made: list[Rig] = []

    def make(**settings: Any) -> Rig:
        made.append(Rig(tmp_path, **settings))
        return made[-1]

    yield make
    for rig in made:
        rig.close()
        for said in sorted(rig.directory.glob("out-*.log")):  # pytest shows it where the test failed
            print(f"--- {said.name}\n{said.read_text(errors='replace')[-6_000:]}")


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    """A rig with the default settings."""
    return make_rig()
