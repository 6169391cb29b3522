"""Seeded runs of a controller that says what is wanted. A failure names its scenario, seed and step."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulation.families import WHOLE
from tests.simulation.memory_rig import MemoryRig
from tests.simulation.redis_rig import RedisRig


@pytest.fixture(autouse=True, scope="module")
def _known() -> Iterator[None]:
    with WHOLE.around():
        yield


@pytest.mark.parametrize("scenario", WHOLE.scenarios)
def test_twin(memory_rig: MemoryRig, scenario: str) -> None:
    """Over the twin, whose runs are quick."""
    seen = WHOLE.campaign(memory_rig, scenario, range(1, 9))
    missing = WHOLE.missing(scenario, seen)
    assert not missing, f"no opportunity: {missing} of {seen}"


@pytest.mark.parametrize("scenario", WHOLE.scenarios)
def test_real_scripts(redis_rig: RedisRig, scenario: str) -> None:
    """Over the released scripts on a real Redis."""
    WHOLE.run(redis_rig, scenario, 1)
