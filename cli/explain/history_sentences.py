"""What a key remembers, in sentences: what queued it, and how its last turn ended. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from oarlock.broker.looks.history import PastTurn, Queued, Triggers
from oarlock.broker.looks.views import KeyView
from oarlock.cli.tables import span

_EVENTS = {
    "set": "{} was written",
    "added": "{} was created",
    "observed": "{} was written, its controller has observed its generation",
    "status": "the status of {} was written",
    "del": "{} was deleted",
    "list": "{} were listed anew",
    "read": "the cache of {} showed a write of its own",
    "due": "its time had come",
    "parked": "its time in the parked set was over",
    "resumed": "its pause ended",
    "lost": "worker {} was lost in its turn",
    "asked": "somebody asked for it",
    "unknown": "nothing says why",
    "anew": "its operator was started",
    "orphans": "an ingestor found objects that it may adopt",
}
_OUTCOMES = {"ok": "ended well", "retry": "failed", "gone": "found the object gone", "lost": "was lost with its worker"}


_DONE = {
    "create": "created",
    "delete": "deleted",
    "patch": "changed",
    "merge": "changed",
    "apply": "applied",
    "wake": "woke",
    "status": "wrote its",
}
_ACT = re.compile(rf"(?:^|(?<=, ))(?:({'|'.join(_DONE)}) [^\s,:]+|status)(?: x\d+)?(?=(:)|,|$)")
_WHOLE = {"-": "did nothing", "quiet": "did nothing, or wrote its status"}


def did_text(did: str) -> str:
    """``create pods x3, status: 409 ...`` as people say it: "created pods x3, could not write its status: 409 ..."."""
    return _WHOLE.get(did) or _ACT.sub(_act_text, did)


def _act_text(found: re.Match[str]) -> str:
    verb, about = found[1] or "status", found[0] if found[1] is None else found[0].partition(" ")[2]
    if found[2]:
        return (
            f"could not {'write its' if verb == 'status' else 'change' if verb in ('patch', 'merge') else verb} {about}"
        )
    return f"{_DONE[verb]} {about}"


def trigger_text(trigger: str) -> str:
    """``set pods/shop/web-1`` as people say it: "pods/shop/web-1 was written"."""
    word, _, about = trigger.partition(" ")
    about = about.partition(" ")[0] if word == "lost" else about
    return _EVENTS[word].format(about) if word in _EVENTS else f"a turn of {trigger} woke it"


def cause_text(kind: str) -> str:
    """A kind of trigger, without its object: "replicasets were written"."""
    word, _, about = kind.partition(" ")
    if word == "lost":
        return "workers were lost in their turns"
    if word in ("set", "del"):
        return f"{about} were {'written' if word == 'set' else 'deleted'}"
    return trigger_text(kind) if word in _EVENTS else f"turns of {word} woke them"


def triggers_text(triggers: Triggers) -> str:
    """All of them: the first, and if there were more, how many, and the last."""
    first = trigger_text(triggers.first)
    if triggers.events <= 1:
        return first
    more = f"{triggers.events - 1} more event{'s' if triggers.events > 2 else ''}"
    last = f", the last: {trigger_text(triggers.last)}" if triggers.last not in ("", triggers.first) else ""
    return f"{first}; {more}{last}"


def queued_sentences(key: KeyView) -> list[str]:
    """What queued a key, and what had queued the turn that is under way."""
    said = []
    if key.lock is not None and key.lock.why is not None:
        said.append(f"It was queued because {triggers_text(key.lock.why.triggers)}.")
    if key.why is not None:
        since = span(max(0, key.now_ms - key.why.since_ms))
        what = "What asks for the next turn" if key.lock is not None else "What queued it"
        said.append(f"{what}, {since} ago: {triggers_text(key.why.triggers)}.")
    return said


def turn_sentences(key: KeyView) -> list[str]:
    """How its last turn ended."""
    if not key.turns:
        return []
    last = key.turns[0]
    ago, many = span(max(0, key.now_ms - last.ended_ms)), f", as {last.turns} in a row" if last.turns > 1 else ""
    told = "it " if last.did != did_text(last.did) else ""
    did = f"; {told}{did_text(last.did)}" if last.did != "-" or last.verdict == "ok" else ""
    return [
        f"Its last turn {_OUTCOMES.get(last.verdict, last.verdict)} {ago} ago{many}{did}. `oarlock history` has more."
    ]


def queued_facts(why: Queued | None) -> dict[str, Any] | None:
    """As `-o json` tells it."""
    return None if why is None else {"since_ms": why.since_ms, **why.triggers._asdict()}


def turn_facts(turns: Sequence[PastTurn]) -> list[dict[str, Any]]:
    """As `-o json` tells them, the newest first."""
    return [
        {**turn._asdict(), "triggers": {"events": turn.triggers.events, "first": turn.triggers.first}} for turn in turns
    ]
