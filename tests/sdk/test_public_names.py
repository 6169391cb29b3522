"""What `import oarlock` gives."""

from __future__ import annotations

import pytest

import oarlock


def test_every_public_name_is_found_and_listed() -> None:
    assert sorted(oarlock.__all__) == sorted(oarlock._PUBLIC)
    for name in oarlock.__all__:
        assert getattr(oarlock, name).__module__.startswith("oarlock.")


def test_another_name() -> None:
    with pytest.raises(AttributeError, match="desire"):
        getattr(oarlock, "desire")  # noqa: B009 - a checker knows that there is none
