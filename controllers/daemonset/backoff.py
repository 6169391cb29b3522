"""How long failed pods are left alone, so that a node which refuses a pod at once does not make pods spin.

The first failure on a node costs nothing; each deletion of a failed pod there doubles the time that the next one stays.
A new generation that the owner's status has acknowledged starts afresh. Upstream:
client-go `util/flowcontrol/backoff.go` with the numbers of `cmd/kube-controller-manager/app/apps.go`. There a waiting
owner is looked at again after the whole delay, here after what is left of it.
"""

import msgspec

from oarlock.controllers.daemonset.model import DaemonSet

FIRST_DELAY_MS = 1_000
DELAY_MAX_MS = 900_000
FORGOTTEN_AFTER_MS = 2 * DELAY_MAX_MS


class BackOff(msgspec.Struct, frozen=True):
    """How long a failed pod of a node is kept: `delay_ms` from `at_ms` on, for one generation of the owner that its
    status had acknowledged. An entry of another generation counts as absent.
    """

    generation: int
    delay_ms: int
    at_ms: int

    @property
    def text(self) -> str:
        """As it stands in the expectations, such as `generation=3 delay_ms=2000 at_ms=1700000000000`."""
        return f"generation={self.generation} delay_ms={self.delay_ms} at_ms={self.at_ms}"

    @classmethod
    def parse(cls, text: str) -> "BackOff | None":
        """Read `text`; None where it is not one."""
        facts = dict(word.split("=", 1) for word in text.split() if "=" in word)
        try:
            return cls(int(facts["generation"]), int(facts["delay_ms"]), int(facts["at_ms"]))
        except (KeyError, ValueError):
            return None


def waiting_ms(entry: BackOff | None, generation: int, now_ms: int) -> int:
    """How long a failed pod is still to be left alone; 0: not at all, also for an entry of another generation.

    A time that is ahead of the clock by the delay or more does not count: the clock was set back, or another machine's
    was wrong.
    """
    if entry is None or entry.generation != generation:
        return 0
    passed_ms = now_ms - entry.at_ms
    return entry.delay_ms - passed_ms if -entry.delay_ms < passed_ms < entry.delay_ms else 0


def next_entry(entry: BackOff | None, generation: int, now_ms: int) -> BackOff:
    """What to keep when a failed pod is deleted now: twice the delay, or the first one where there is none yet."""
    known = entry is not None and entry.generation == generation and now_ms - entry.at_ms <= FORGOTTEN_AFTER_MS
    delay_ms = min(2 * entry.delay_ms, DELAY_MAX_MS) if entry is not None and known else FIRST_DELAY_MS
    return BackOff(generation, delay_ms, now_ms)


def is_over(entry: BackOff, owner: DaemonSet, now_ms: int) -> bool:
    """Whether the entry matters no more: long over, or of a generation before the one acknowledged."""
    return entry.generation < owner.status.observed_generation or now_ms - entry.at_ms > FORGOTTEN_AFTER_MS
