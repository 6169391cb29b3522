"""Why does nothing happen to a key? Sentences for people, from the facts alone."""

from __future__ import annotations

from oarlock.queue.values import KeyFacts


def explain(queue: str, facts: KeyFacts) -> list[str]:
    """One sentence a line; the traceback of the last failure comes last."""
    lines = [_STATES[facts.state](queue, facts)]
    if facts.state == "running+":
        lines.append("It was added again meanwhile, so it runs once more afterwards.")
    if facts.due_in_ms is not None:
        why = f", after failed run {facts.failures} in a row" if facts.failures and facts.state == "idle" else ""
        lines.append(f"It is to be queued in {_s(facts.due_in_ms)}{why}.")
    if facts.failures and facts.state != "parked":
        lines.append(f"Failed runs in a row: {facts.failures}.")
    if not facts.consumers:
        lines.append("No consumer has called in the last 5 s: start one with queue.run().")
    if facts.error:
        lines += ["The last failure:", *(f"  {line}" for line in facts.error.rstrip().splitlines())]
    return lines


def _idle(queue: str, facts: KeyFacts) -> str:
    return f"{facts.key} is idle: nothing is to be done" + (" yet." if facts.due_in_ms is not None else ".")


def _queued(queue: str, facts: KeyFacts) -> str:
    among = f" of group {facts.group!r}" if facts.group else ""
    turns = f"{facts.groups} groups with keys take turns"
    return f"{facts.key} is queued: one of {facts.queued_in_group} keys{among}; {turns}."


def _running(queue: str, facts: KeyFacts) -> str:
    since, left = _s(facts.running_ms or 0), _s(facts.lease_left_ms or 0)
    return f"{facts.key} is in work since {since} by {facts.holder}, token {facts.token}; its lease ends in {left}."


def _parked(queue: str, facts: KeyFacts) -> str:
    return (
        f"{facts.key} is parked since {_s(facts.parked_ms or 0)}, after {facts.failures} failed runs in a row: nothing"
        f" runs it until `oarlock queue requeue {facts.key} --queue {queue}`."
    )


_STATES = {"idle": _idle, "queued": _queued, "running": _running, "running+": _running, "parked": _parked}


def _s(ms: int) -> str:
    return f"{ms / 1000:.1f} s"
