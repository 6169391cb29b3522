"""Source archives are unpacked by every Python that is promised."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.realserver import building

_extractall = tarfile.TarFile.extractall


def _as_in_3_11_2(tar: tarfile.TarFile, path: Any = ".", members: Any = None, *, numeric_owner: bool = False) -> None:
    _extractall(tar, path, members, numeric_owner=numeric_owner)


@pytest.mark.parametrize("filters", [True, False], ids=["with-filters", "as-in-3.11.2"])
def test_a_source_archive_is_unpacked(filters: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not filters:
        monkeypatch.setattr(tarfile.TarFile, "extractall", _as_in_3_11_2)
        monkeypatch.delattr(tarfile, "tar_filter", raising=False)
    text = b"all:\n"
    with tarfile.open(tmp_path / "source.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("kubernetes-1.2.3/Makefile")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    root = building._unpacked(tmp_path / "source.tar.gz", tmp_path)
    assert (root / "Makefile").read_bytes() == text
