"""The tabs of `oarlock top`: which columns each has, and its rows from a look. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oarlock.broker.looks.history import Triggers
from oarlock.cli.explain.history_sentences import cause_text, did_text, triggers_text
from oarlock.cli.tables import cell, counted, span
from oarlock.cli.top.heading import size
from oarlock.cli.watch.fleet_look import FleetLook


class Task(NamedTuple):
    """The key that a row is about."""

    shard: str
    queue: str
    key: str


class Row(NamedTuple):
    """``name``: the same at each look, unlike its place. ``task``: None where it is about no key. ``alarm``: whether it
    asks for a person.
    """

    name: str
    cells: Sequence[str]
    task: Task | None = None
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class Tab:
    """``caption``: what part of all there is the rows are."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Callable[[FleetLook], Iterator[Row]]
    caption: Callable[[FleetLook], str]


def filtered(rows: Sequence[Row], text: str) -> list[Row]:
    """The rows that have every word of the text, in any of their cells."""
    words = text.lower().split()
    return [row for row in rows if all(word in " ".join(row.cells).lower() for word in words)]


def _cells(*values: object) -> list[str]:
    return [cell(value) for value in values]


def _row(task: Task, *values: object, alarm: bool = False, name: str = "") -> Row:
    return Row(name or " ".join(task), _cells(*values), task, alarm)


def _because(why: Triggers | None) -> str:
    return "" if why is None else triggers_text(why)


def _keys(look: FleetLook) -> Iterator[Row]:
    for each in look.keys:
        task = Task(each.shard, each.queue, each.key)
        name = f"{each.state == 'delayed'} {' '.join(task)}"
        age, due = span(each.age_ms), span(each.due_in_ms)
        since = "" if each.paused_ms is None else f" for {span(each.paused_ms)}"
        because = f"paused{since}: {each.paused}" if each.paused else _because(each.why)
        yield _row(task, each.queue, each.key, each.state, age, due, because, name=name)


def _workers(look: FleetLook) -> Iterator[Row]:
    for each in look.workers:
        values = (
            each.worker,
            each.state,
            each.queue,
            each.key,
            span(each.held_ms),
            span(each.lease_ms),
            each.writes,
            _because(each.why),
            each.supervisor,
        )
        late = each.lease_ms is not None and each.lease_ms < 0
        if each.key:
            task = Task(each.shard, each.queue, each.key)
            yield _row(task, *values, alarm=late, name=f"{each.worker} {' '.join(task)}")
        else:
            yield Row(f"{each.shard} {each.worker}", _cells(*values))


def _trouble(look: FleetLook) -> Iterator[Row]:
    for each in look.trouble:
        yield _row(
            Task(each.shard, each.queue, each.key),
            each.queue,
            each.key,
            each.state,
            each.failures,
            each.crashes,
            span(each.due_in_ms),
            span(each.ended_ms),
            did_text(each.did),
            alarm=each.state == "parked",
        )


def _namespaces(look: FleetLook) -> Iterator[Row]:
    for each in look.namespaces:
        named = each.namespace or "(nodes)"
        because = ", ".join(f"{cause_text(cause)} ({events:,})" for cause, events in each.because)
        yield Row(named, _cells(named, f"{each.keys:,}", f"{each.share:.1%}", each.queue, because))


SERVER = {
    "redis_version": "version",
    "role": "role",
    "uptime_in_seconds": "up for",
    "used_memory": "memory",
    "used_memory_peak": "memory at its peak",
    "maxmemory": "maxmemory",
    "maxmemory_policy": "maxmemory-policy",
    "mem_fragmentation_ratio": "fragmentation",
    "evicted_keys": "evicted keys",
    "connected_clients": "clients",
    "blocked_clients": "clients that wait",
    "instantaneous_ops_per_sec": "commands/s",
    "instantaneous_input_kbps": "kB/s in",
    "instantaneous_output_kbps": "kB/s out",
    "connected_slaves": "replicas",
}
"""Fact of INFO -> what it is called."""


def _redis(look: FleetLook) -> Iterator[Row]:
    for shard in look.shards:
        where = f"shard {shard.shard}, " if len(look.shards) > 1 else ""
        for fact, title in SERVER.items():
            if fact in shard.server:
                yield _fact(where + title, _server_value(fact, shard.server[fact]))
        for resource in (each for each in look.resources if each.shard == shard.shard):
            confirmed = f"{cell(resource.objects)} objects, confirmed {span(resource.age_ms)} ago"
            yield _fact(f"{where}cache of {resource.resource}", confirmed)
        for queue in (each for each in look.queues if each.shard == shard.shard):
            counts = {
                "queued": queue.queued,
                "in work": queue.in_work,
                "delayed": queue.delayed,
                "failing": queue.failing,
                "parked": queue.parked,
                "held by a pause": queue.held,
            }
            told = ", ".join(f"{cell(count)} {word}" for word, count in counts.items())
            yield _fact(f"{where}queue {queue.queue}", told)


def _fact(title: str, value: str) -> Row:
    return Row(title, _cells(title, value))


def _server_value(fact: str, value: str) -> str:
    if not value.isdigit():
        return value
    if fact == "maxmemory" and value == "0":
        return "no limit"
    if "memory" in fact:
        return size(int(value))
    return span(int(value) * 1_000) if fact == "uptime_in_seconds" else f"{int(value):,}"


def _of_all(shown: int, total: int, what: str) -> str:
    return counted(shown, what) if shown >= total else f"{shown:,} of {counted(total, what)}"


def _keys_caption(look: FleetLook) -> str:
    total = sum(look.total(count) for count in ("queued", "in_work", "delayed", "held"))
    return f"{_of_all(len(look.keys), total, 'key')} not idle, the oldest first"


def _workers_caption(look: FleetLook) -> str:
    names = len({(each.shard, each.worker) for each in look.workers})
    return _of_all(names, sum(each.registered or 0 for each in look.shards), "worker")


def _trouble_caption(look: FleetLook) -> str:
    of = _of_all(len(look.trouble), look.total("failing") + look.total("parked"), "key")
    return f"{of}; parked ones first, then those that failed most often in a row"


def _namespaces_caption(look: FleetLook) -> str:
    if look.sampled >= look.active:
        return f"of {counted(look.active, 'key')} queued, in work or parked"
    return f"estimated from {look.sampled:,} of {counted(look.active, 'key')}, picked at random"


def _redis_caption(look: FleetLook) -> str:
    return f"of {counted(len(look.shards) + len(look.away), 'shard')} {len(look.shards)} answer"


TABS: Sequence[Tab] = (
    Tab("keys", "Keys", ("CONTROLLER", "KEY", "STATE", "AGE", "DUE IN", "BECAUSE"), _keys, _keys_caption),
    Tab(
        "workers",
        "Workers",
        ("WORKER", "STATE", "CONTROLLER", "KEY", "HELD FOR", "ENDS IN", "WRITES", "BECAUSE", "SUPERVISOR"),
        _workers,
        _workers_caption,
    ),
    Tab(
        "trouble",
        "Failing and parked",
        ("CONTROLLER", "KEY", "STATE", "FAILED", "CRASHED", "AGAIN IN", "LAST TURN", "DID"),
        _trouble,
        _trouble_caption,
    ),
    Tab(
        "namespaces",
        "Namespaces",
        ("NAMESPACE", "KEYS", "SHARE", "MOSTLY", "BECAUSE (EVENTS)"),
        _namespaces,
        _namespaces_caption,
    ),
    Tab("redis", "Redis", ("WHAT", "VALUE"), _redis, _redis_caption),
)
