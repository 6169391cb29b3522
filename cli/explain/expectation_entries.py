"""The entries of a key's expectations, as people and tools see them: the stored text, and times relative to now."""

from __future__ import annotations

import re
from dataclasses import dataclass

from oarlock.broker.expectations import BACK_OFF, REST, REWRITTEN, SCALE, OpenWrite, Rewritten
from oarlock.broker.looks.views import ExpectationsView
from oarlock.cli.tables import span
from oarlock.controllers.daemonset.backoff import BackOff
from oarlock.controllers.deployment.sizing.sizes import UNKNOWN
from oarlock.workers.process.log_line import discreet

_UNTIL = re.compile(r"(?:^| )until_ms=(\d{1,17})$")
_NODE = re.compile(r"(?:^| )(node=\S+)")
_SIZES = re.compile(r"(?:^| )(low=[0-9]{1,10} high=[0-9]{1,10})(?: |$)")
_HINTS = {"create": _NODE, "reserved": _NODE, SCALE: _SIZES}


@dataclass(frozen=True, slots=True)
class EntryView:
    """One entry. ``what``: its field, "create pods/web-1"; ``state``: its text, as stored.

    ``hint``: "node=n1" of a create or a reserved name, "low=2 high=4" of sizes. ``left_ms``: until a request for it can
    no longer land, or until the name is no longer reserved, passed over or resting, or until a failed pod is replaced;
    0 when that is over, None where no time is set. Of a write without an answer: ``age_ms`` since it was announced
    first, ``sent_ago_ms`` since last, ``tries``: how often; else None.
    """

    what: str
    state: str
    hint: str = ""
    left_ms: int | None = None
    age_ms: int | None = None
    sent_ago_ms: int | None = None
    tries: int | None = None

    @property
    def verb(self) -> str:
        return self.what.partition(" ")[0]

    @property
    def name(self) -> str:
        """The pod's with the node that it is for, or the ReplicaSet's with the sizes that it may have."""
        name = self.what.partition(" ")[2].rpartition("/")[2]
        hints = dict(word.split("=", 1) for word in self.hint.split())
        if "node" in hints:
            return f"{name} for {hints['node']}"
        if not hints:
            return name
        low, high = int(hints["low"]), int(hints["high"])
        return f"{name} from {low} to {'nobody knows how many' if high >= UNKNOWN else high}"

    @property
    def is_open(self) -> bool:
        """Whether it is a write without an answer."""
        return self.tries is not None


def entries_of(expectations: ExpectationsView, wall_ms: int) -> list[EntryView]:
    """Every entry, by name. ``wall_ms``: the clock of back-offs; all other times are of Redis's clock."""
    return [
        _entry(name, text, expectations.now_ms, wall_ms)
        for name, text in sorted(expectations.fields.items())
        if name not in ("owner", "said")
    ]


def said_of(expectations: ExpectationsView) -> str:
    """The last answer that proved nothing, in the server's words without the values of fields; "" if there is none."""
    return discreet(expectations.fields.get("said", ""))


def state_told(entry: EntryView) -> str:
    """The text of an entry, without its name."""
    if entry.is_open:
        return f"no answer: {_sends(entry)}" + (f", {entry.hint}" if entry.hint else "")
    match entry.verb:
        case "reserved":
            return time_told(entry, "until the next look at the API") + (f", {entry.hint}" if entry.hint else "")
        case "passed":
            return time_told(entry, "over")
        case "rest":
            return rest_told(entry)
        case verb if verb == REWRITTEN:
            held = f", no turn {time_told(entry, '')}" if entry.left_ms else ""
            return f"{Rewritten.parse(entry.state).times} times in a row{held}"
        case verb if verb == BACK_OFF and (back_off := BackOff.parse(entry.state)) is not None:
            left = time_told(entry, "over")
            return f"{left}, {span(back_off.delay_ms)} in all, generation {back_off.generation}"
        case _:
            return entry.state


def write_told(entry: EntryView) -> str:
    """A write without an answer: its pod, and when it was sent."""
    return f"{entry.name} ({_sends(entry)})"


def time_told(entry: EntryView, over: str) -> str:
    """``for another 9.0s``, or ``over``."""
    return f"for another {span(entry.left_ms)}" if entry.left_ms else over


def rest_told(entry: EntryView) -> str:
    """How long the name of a failed pod is not used."""
    return "until that has gone" if entry.left_ms is None else time_told(entry, "over")


def _sends(entry: EntryView) -> str:
    told = f"sent {span(entry.age_ms)} ago"
    if entry.tries is not None and entry.tries > 1:
        told = f"sent {entry.tries} times in {span(entry.age_ms)}, the last time {span(entry.sent_ago_ms)} ago"
    if entry.left_ms is None:
        return told
    return told + (f", may land for another {span(entry.left_ms)}" if entry.left_ms else ", to be looked up")


def _entry(name: str, text: str, now_ms: int, wall_ms: int) -> EntryView:
    verb = name.partition(" ")[0]
    hint = found[1] if (pattern := _HINTS.get(verb)) and (found := pattern.search(text)) else ""
    if verb == BACK_OFF:
        back_off = BackOff.parse(text)
        left_ms = max(0, back_off.at_ms + back_off.delay_ms - wall_ms) if back_off is not None else None
        return EntryView(name, text, left_ms=left_ms)
    until = _UNTIL.search(text)
    left_ms = max(0, int(until[1]) - now_ms) if until else 0 if "over" in text.split() else None
    if verb not in ("create", "delete", SCALE) or not text.startswith("pending "):
        return EntryView(name, text, hint, left_ms if verb in ("reserved", "passed", REST, REWRITTEN) else None)
    opened = OpenWrite.parse(text)
    return EntryView(
        name,
        text,
        hint,
        left_ms,
        max(0, now_ms - opened.since_ms),
        max(0, now_ms - opened.sent_ms),
        opened.tries,
    )
