"""The number of the upstream case in a test's id, for tests that are no tables. See tests/controllers/deviations.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., Any])


def inventory(case: str) -> Callable[[F], F]:
    """``@inventory("11.2.4 dormancy")``."""

    def mark(test: F) -> F:
        named: F = pytest.mark.parametrize("inventory", [case], indirect=True)(test)
        using: F = pytest.mark.usefixtures("inventory")(named)
        return using

    return mark
