"""What a turn did, in a line for people: its writes by what came of them, the keys it woke, why it failed."""

from __future__ import annotations

from oarlock.cluster.answer import NO_ANSWER, NOT_SENT, TOO_LATE, Answer
from oarlock.workers.process.log_line import discreet
from oarlock.workers.turn.steps import Write

SAID_MAX, LINE_MAX = 100, 240
"""Characters kept of an answer, and bytes of the whole: a history has room for a thousand."""

_OURS = {NO_ANSWER: "no answer", NOT_SENT: "not sent", TOO_LATE: "too late to send"}
_MODIFIED = "the object has been modified"


class TurnNote:
    """Put together while the turn goes on: "create pods x3, status, wake daemonset x2"."""

    __slots__ = ("_counts", "_failed")

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._failed = False

    def wrote(self, write: Write, answer: Answer) -> None:
        """The answer to a write. Of several alike that were refused, the first answer is kept."""
        said, what = "", "status" if write.verb == "status" else f"{write.verb} {write.resource}"
        if not answer.ok:
            self._failed = True
            said = f": {_said(answer)}"[:SAID_MAX].rstrip(" :,")
            known = next((each for each in self._counts if each[0] == what and each[1]), None)
            if known is not None and known[1].split()[1] == said.split()[1]:
                said = known[1]
        self._count(what, said, 1)

    def woke(self, queue: str, keys: int) -> None:
        """Keys of another queue."""
        self._count(f"wake {queue}", "", keys)

    def text(self, error: str = "") -> str:
        """The line; "" where nothing was done. ``error``: why it failed, told unless an answer says so."""
        if not self._counts and not error:
            return ""
        words, told = [], set()
        for (what, said), count in self._counts.items():
            again = said in told  # a server that refuses everything says so once
            told.add(said)
            words.append(f"{what}{f' x{count}' if count > 1 else ''}{': the same' if said and again else said}")
        if error and not self._failed:
            words.append(failed(error))
        return one_line(", ".join(words))

    def _count(self, what: str, said: str, count: int) -> None:
        self._counts[what, said] = self._counts.get((what, said), 0) + count


def _said(answer: Answer) -> str:
    """An answer that is no success. The two usual ones are long with the server: a history has room for few such."""
    message = discreet(answer.message)
    if answer.code == 429:
        message = "too many requests"
    elif answer.code == 409 and _MODIFIED in message:
        message = _MODIFIED
    return f"{_OURS.get(answer.code) or answer.code} {message}"


def failed(error: str) -> str:
    """Why a turn failed."""
    return f"failed: {discreet(error)}"


def one_line(text: str) -> str:
    """As a history takes it: " < " ends it there, and Redis takes nothing but UTF-8."""
    line = " ".join(text.split()).replace(" < ", " <")
    return line.encode(errors="backslashreplace")[:LINE_MAX].decode(errors="ignore")
