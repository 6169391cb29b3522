"""Which ingestor hears nothing of the API, in sentences: what it misses, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from oarlock.broker.looks.hearing import Hearing
from oarlock.cli.tables import span


def hearing_lines(found: Sequence[Hearing]) -> list[str]:
    """A line for each ingestor that hears nothing of a resource, or says nothing itself. ``found``: all there are."""
    said = []
    for each in found:
        if each.late:
            said.append(f"{each.ingestor} has said nothing for {span(each.age_ms)}: it hangs, was stopped or has died")
        elif each.deaf:
            longest_ms = max((each.silent_ms.get(resource, 0) for resource in each.deaf), default=0)
            silent = f"{each.ingestor} is deaf: it hears nothing of {', '.join(each.deaf)} for {span(longest_ms)}"
            said.append(f"{silent}; {_mend(each, found)}")
    return said


def unheard(resource: str, found: Sequence[Hearing]) -> list[str]:
    """Which ingestors there are, if none of them hears a resource."""
    living = [each for each in found if not each.late]
    return [each.ingestor for each in living] if all(resource in each.deaf for each in living) else []


def _mend(one: Hearing, found: Sequence[Hearing]) -> str:
    missed = [resource for resource in one.deaf if unheard(resource, found)]
    if missed:
        seen = f"nobody hears it, and what changes of {', '.join(missed)} is not seen"
        return f"{seen}: look at the API server and the way to it, then restart the ingestor"
    return "another ingestor hears it, so nothing is missed: look at its way to the API server, or restart it"
