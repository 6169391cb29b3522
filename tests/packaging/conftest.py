"""One copy of the sources, and one wheel, for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.installing import sources, wheel_of


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sources(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of(source, tmp_path_factory.mktemp("dist"))
