"""The table of `oarlock dev`: objects, turns and failures of each controller, from the cache and from the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import redis
from prometheus_client.parser import text_string_to_metric_families

from oarlock.broker import epoch
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cli.tables import Row

COLUMNS = {
    "controller": "CONTROLLER",
    "objects": "OBJECTS",
    "turns": "TURNS",
    "failed": "FAILED",
    "queued": "QUEUED",
    "in_work": "IN WORK",
    "delayed": "DELAYED",
    "parked": "PARKED",
}
READ_WITHIN_S = 0.5


def rows(client: redis.Redis, fleet: str, metrics_url: str, controllers: Sequence[dict[str, Any]]) -> list[Row]:
    """One row a controller; none while there is no epoch or nobody answers."""
    try:
        seen = epoch.current(client, fleet)
        inspector = Inspector(client, seen.epoch, fleet)
        if not seen.epoch:
            return []
        turns = turns_of(_read(metrics_url))
        counts = {each.resource: each.objects for each in inspector.resources()}
        return [_row(inspector, each, turns, counts) for each in controllers]
    except (BrokerUnreachable, URLError, OSError, ValueError):
        return []


def _row(inspector: Inspector, about: dict[str, Any], turns: dict[str, Counter[str]], counts: dict[str, int]) -> Row:
    name = about["name"]
    queue, done = inspector.queue(name), turns.get(name, Counter())
    return {
        "controller": name,
        "objects": counts.get(about["resource"], 0),
        "turns": done.total(),
        "failed": done["failed"],
        "queued": queue.queued,
        "in_work": queue.in_work,
        "delayed": queue.delayed,
        "parked": queue.parked,
    }


def _read(metrics_url: str) -> str:
    with urlopen(f"{metrics_url}/metrics", timeout=READ_WITHIN_S) as answer:  # noqa: S310 - our own process
        text: str = answer.read().decode()
        return text


def turns_of(text: str) -> dict[str, Counter[str]]:
    """Queue -> outcome -> how many turns ended so, from the text of /metrics."""
    found: dict[str, Counter[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "oarlock_turns_total":
                counts = found.setdefault(sample.labels["queue"], Counter())
                counts[sample.labels["outcome"]] += int(sample.value)
    return found
