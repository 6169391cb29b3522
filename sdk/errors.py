"""What a function of one's own may raise, and what its ctx raises."""

from __future__ import annotations

from oarlock.controllers.requests import ApiError, LostClaim
from oarlock.controllers.wanted import UserError

__all__ = ["ApiError", "Later", "LostClaim", "Never"]


class Later(UserError):
    """Raise it to have the object looked at again after ``seconds``. It is no failure; an event tells ``reason``."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        if not 0 <= seconds < 1e9:
            raise ValueError(f"Later(seconds={seconds!r}): give seconds from 0 on")
        super().__init__(reason, after_ms=round(seconds * 1000))


class Never(UserError):
    """Raise it where trying again is of no use before the object has changed. An event tells ``reason``.

    Each worker remembers it by itself, so a worker that is new tries once: what was wrong may have been the code.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason, never=True)
