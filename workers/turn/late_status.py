"""Which statuses may wait for the turn that is to come anyway."""

from __future__ import annotations

PUT_OFF_MS = 1_000
OWNERS_MAX = 10_000


class LateStatus:
    """Owners whose status this process has put off, by UID, and since when.

    A turn that has created pods is followed by another, which their events ask for: what the first would write is out
    of date before it is written. Upstream writes it all the same. Under a limit of requests, where an owner has a turn
    for every handful of pods, such a status takes the place of a pod. It is put off for a second at most, so that it
    is seen to grow, and so that an owner whose pods go as fast as they come has one too.
    """

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def put_off(self, uid: str, now_ms: int) -> bool:
        """Whether the status of this owner may wait once more."""
        if len(self._since_ms) >= OWNERS_MAX:
            self._since_ms.clear()
        if 0 <= now_ms - self._since_ms.setdefault(uid, now_ms) < PUT_OFF_MS:
            return True
        self.forget(uid)
        return False

    def forget(self, uid: str) -> None:
        """The status of this owner is written, or says what it should."""
        self._since_ms.pop(uid, None)
