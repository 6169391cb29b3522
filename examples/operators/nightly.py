"""Deployments that sleep at night: a controller over a kind that is not its own, with a timer and without a CRD.

    kubectl annotate deployment shop nightly.example.com/asleep=20:00-07:00

Times are UTC. The size of the day is kept in an annotation while the Deployment sleeps. Whoever scales a sleeping
Deployment wakes it until the next evening.
"""

from datetime import UTC, datetime, time, timedelta
from typing import Any

import oarlock

ASLEEP = "nightly.example.com/asleep"
BY_DAY = "nightly.example.com/replicas-by-day"
SINCE = "nightly.example.com/asleep-since"
DAY = timedelta(days=1)


@oarlock.steps("apps/v1 Deployment", fields=["metadata.annotations", "spec.replicas"])
def nightly(deployment: dict[str, Any], ctx: oarlock.Context) -> None:
    annotations = deployment["metadata"].get("annotations", {})
    if ASLEEP not in annotations:
        return
    now = datetime.now(UTC)
    change = change_at(now, annotations, deployment["spec"].get("replicas", 1))
    if change:
        ctx.patch("Deployment", deployment["metadata"]["name"], change)
    ctx.again(seconds=(next_change(now, *hours(annotations[ASLEEP])) - now).total_seconds())


def change_at(now: datetime, annotations: dict[str, str], replicas: int) -> dict[str, Any] | None:
    """The patch that is due at `now`, or None. Raises Never for hours that cannot be read."""
    begin, end = hours(annotations[ASLEEP])
    since = night(now, begin, end)
    if since is None:
        if BY_DAY not in annotations and SINCE not in annotations:
            return None
        by_day = annotations.get(BY_DAY)
        woken = {"spec": {"replicas": int(by_day)}} if by_day and replicas == 0 else {}
        return {"metadata": {"annotations": {BY_DAY: None, SINCE: None}}, **woken}
    if annotations.get(SINCE) == since.isoformat():
        return None  # it was put to sleep this night; somebody may have woken it since
    by_day = str(replicas) if replicas else annotations.get(BY_DAY)
    return {
        "metadata": {"annotations": {BY_DAY: by_day, SINCE: since.isoformat()}},
        "spec": {"replicas": 0},
    }


def hours(text: str) -> tuple[time, time]:
    """ "20:00-07:00". Raises Never."""
    try:
        begin, end = (time.fromisoformat(word.strip()) for word in text.split("-"))
    except ValueError:
        raise oarlock.Never(f'{ASLEEP} is {text!r}; it has to be like "20:00-07:00"') from None
    return begin, end


def night(now: datetime, begin: time, end: time) -> datetime | None:
    """When the night around `now` began, None by day. A night that ends as it begins lasts all day."""
    for day in (now, now - DAY):
        start = datetime.combine(day, begin, UTC)
        stop = datetime.combine(day, end, UTC)
        if stop <= start:
            stop += DAY
        if start <= now < stop:
            return start
    return None


def next_change(now: datetime, begin: time, end: time) -> datetime:
    """The next evening or morning after `now`."""
    edges = (datetime.combine(now, edge, UTC) for edge in (begin, end))
    return min(edge if edge > now else edge + DAY for edge in edges)
