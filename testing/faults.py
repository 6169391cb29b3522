"""Faults on demand: what a bad network or a struggling API server does to its clients, for the requests of one test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

from oarlock.sandbox.apiserver.http.faults import WRITES, Action, Fault
from oarlock.testing.running import ROLE, Running

CONTROLLERS, TESTS, ANYONE = "controllers", "tests", "anyone"
_OURS: Final = ("(ingestor)", "(worker)", "(worker events)")
_ANSWERED: Final = ("get", "list", *WRITES)
_VERBS: Final = ("get", "list", "watch", *WRITES)
_WHAT: Final = {
    403: (Action.FORBID, WRITES),
    409: (Action.CONFLICT, ("update", "patch")),
    410: (Action.CUT_HISTORY, ("watch",)),
    429: (Action.REFUSE, WRITES),
    500: (Action.FAIL_BEFORE, WRITES),
    "late 500": (Action.FAIL_AFTER, WRITES),
    "no answer": (Action.DROP_ANSWER, WRITES),
    "slow": (Action.DELAY_BEFORE, _ANSWERED),
    "slow watch": (Action.STALL_WATCH, ("watch",)),
}
"""What may be asked for, and the verbs that are meant where none is named."""


class InjectedFault:
    """In force from when it is made until ``end``, or to the end of a with block, or until it is used up."""

    def __init__(self, running: Running, fault: Fault) -> None:
        self._running, self._fault = running, fault
        running.call(lambda: running.api.requests.inject(fault))

    @property
    def applied(self) -> int:
        """How many requests it has befallen."""
        return self._fault.applied

    def end(self) -> None:
        """Nothing more befalls anybody. May be called again."""
        faults = self._running.api.faults
        assert faults is not None
        self._running.call(lambda: faults.remove(self._fault))

    def __enter__(self) -> InjectedFault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def fault_of(
    what: int | str,
    verb: str | Sequence[str] | None,
    resource: str,
    name: str,
    times: int | None,
    seconds: float,
    by: str,
) -> Fault:
    """The server's form of it. Raises ValueError with the mend."""
    if what not in _WHAT:
        raise ValueError(f"no such fault: {what!r}; there are {', '.join(map(repr, _WHAT))}")
    action, verbs = _WHAT[what]
    if verb is not None:
        verbs = (verb,) if isinstance(verb, str) else tuple(verb)
        if unknown := [each for each in verbs if each not in (*_VERBS, "*")]:
            raise ValueError(f"fault: no request has the verb {unknown[0]!r}; there are {', '.join(_VERBS)}")
    of_whom: dict[str, Callable[[], tuple[str, tuple[str, ...]]]] = {
        ANYONE: lambda: ("", ()),
        CONTROLLERS: lambda: ("oarlock/", (f"({ROLE})",)),
        TESTS: lambda: ("", _OURS),
    }
    if by not in of_whom:
        raise ValueError(f"by={by!r}: give one of {', '.join(map(repr, of_whom))}")
    user_agent, spares = of_whom[by]()
    needs_seconds = what in ("slow", "slow watch")
    if needs_seconds != bool(seconds):
        raise ValueError(
            f"fault {what!r}: {'say how long, with seconds=' if needs_seconds else 'it takes no seconds='}"
        )
    return Fault(
        action,
        verbs=verbs,
        resources=(resource,),
        names=(name,),
        count_max=times,
        user_agent=user_agent,
        spares=spares,
        delay_ms=(seconds * 1000, seconds * 1000),
        duration_s=seconds,
    )
