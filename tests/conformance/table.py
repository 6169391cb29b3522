"""The results for a person: a row a case, then a line for each thing that is not as it has to be. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.conformance.cases import NOT_PLAYED, SIG, called
from tests.conformance.results import Result

NOT_RUN = "not run"
_REASON_MAX = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One case: `text` is that of the suite, `ok` whether it is as it has to be."""

    text: str
    result: str
    took_s: float
    why: str
    ok: bool


def rows(texts: Iterable[str], results: Mapping[str, Result]) -> list[Row]:
    """Every case by its full text, those of NOT_PLAYED as not run."""
    return [_row(text, results.get(text)) for text in texts]


def _row(text: str, result: Result | None) -> Row:
    shown = " ".join(text.removeprefix(SIG).split())
    if why := NOT_PLAYED.get(called(text)):
        return Row(shown, NOT_RUN, 0.0, why, ok=True)
    if result is None:
        return Row(shown, "no result", 0.0, "the suite ended before it", ok=False)
    if result.outcome == "skipped":
        return Row(shown, "skipped", result.took_s, "by the suite itself, and not listed here with a reason", ok=False)
    return Row(shown, result.outcome, result.took_s, _reason(result.message), ok=result.outcome == "passed")


def others_failed(texts: Iterable[str], results: Mapping[str, Result]) -> list[str]:
    """A line for what failed beside the cases: what the suite does before the first and after the last."""
    ours = set(texts)
    return [
        f"{name} failed: {_reason(result.message)}"
        for name, result in results.items()
        if name not in ours and result.outcome == "failed"
    ]


def drawn(table: Sequence[Row]) -> str:
    """The table and its sum."""
    width = max(len(row.text) for row in table)
    lines = [f"{'CASE':{width}}  {'RESULT':9}  {'TOOK':>7}  WHY"]
    for row in table:
        took = f"{row.took_s:.1f} s" if row.took_s else "-"
        lines.append(f"{row.text:{width}}  {row.result:9}  {took:>7}  {row.why}".rstrip())
    counts = ", ".join(
        f"{sum(row.result == result for row in table)} {result}"
        for result in dict.fromkeys(row.result for row in table)
    )
    return "\n".join([*lines, f"{len(table)} cases: {counts}"])


def _reason(message: str) -> str:
    """The first lines of a failure that tell something, as one; the place in the source that leads them is left out."""
    lines = [line.strip() for line in message.splitlines() if line.strip() and not line.strip().startswith("/")]
    return " ".join(lines)[:_REASON_MAX]
