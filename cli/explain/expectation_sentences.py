"""The expectations of a key, as sentences. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oarlock.broker.expectations import REWRITTEN, SCALE
from oarlock.broker.looks.views import ExpectationsView
from oarlock.cli.explain.expectation_entries import (
    EntryView,
    entries_of,
    rest_told,
    said_of,
    state_told,
    time_told,
    write_told,
)
from oarlock.cli.tables import listed


def sentences_of_expectations(expectations: ExpectationsView) -> list[str]:
    """Writes without an answer, the last answer, then names that cannot be used for a while."""
    entries = entries_of(expectations, wall_ms=0)  # the owner's own sentences tell of back-offs
    opened = sorted((each for each in entries if each.is_open), key=lambda each: -(each.age_ms or 0))
    unanswered = {each.what.partition(" ")[2] for each in opened if each.verb == "create"}

    def of(verb: str) -> list[EntryView]:
        return [each for each in entries if each.verb == verb and not each.is_open]

    reserved = [each for each in of("reserved") if each.what.partition(" ")[2] not in unanswered]
    said = [
        _told(
            [each for each in opened if each.verb == verb],
            f"{one} has no answer yet",
            f"{many} have no answer yet",
            write_told,
        )
        for verb, one, many in (
            ("create", "create", "creates"),
            ("delete", "delete", "deletes"),
            (SCALE, "change of a size", "changes of sizes"),
        )
    ]
    if answer := said_of(expectations):
        said.append(f"The last answer that proved nothing: {answer.rstrip('.')}.")
    if opened:
        said.append("Everything else goes on meanwhile, counting each of these both as done and as not done.")
    said += [
        _told(
            of("delete"),
            "delete is done and not yet seen in the cache",
            "deletes are done and not yet seen in the cache",
            lambda each: each.name,
        ),
        _told(
            of(SCALE),
            "change of a size is done and not yet observed",
            "changes of sizes are done and not yet observed",
            lambda each: each.name,
        ),
        _told(
            reserved,
            "name is reserved, as a create that was sent may still take it",
            "names are reserved, as creates that were sent may still take them",
            lambda each: f"{each.name} ({time_told(each, 'until the next look at the API')})",
        ),
        _told(
            of("passed"),
            "name is passed over where another will do, as it was refused or never answered",
            "names are passed over where others will do, as they were refused or never answered",
            lambda each: f"{each.name} ({time_told(each, 'over')})",
        ),
        _told(
            of("rest"),
            "name rests, as its pod has failed",
            "names rest, as their pods have failed",
            lambda each: f"{each.name} ({rest_told(each)})",
        ),
        _told(
            of("blocked"),
            "name is blocked by a pod that is not its own",
            "names are blocked by pods that are not its own",
            lambda each: each.name,
        ),
    ]
    said += [
        f"Its status was written though nothing else had changed, {state_told(each)}: a time or a random value may be"
        " in it."
        for each in of(REWRITTEN)
        if each.left_ms
    ]
    return [each for each in said if each]


def _told(entries: Sequence[EntryView], one: str, many: str, name: Callable[[EntryView], str]) -> str:
    """``2 names are blocked: a, b.``, or "" where there are none."""
    if not entries:
        return ""
    counted = f"1 {one}" if len(entries) == 1 else f"{len(entries)} {many}"
    return f"{counted}: {listed([name(each) for each in entries])}."
