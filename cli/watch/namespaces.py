"""Who fills the queue: namespaces, from keys picked at random where there are too many to look at all. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from oarlock.broker.looks.history import Triggers
from oarlock.cli.watch.fleet_look import NamespaceLook

CAUSES_MAX = 3
"""Kinds of triggers that are told of a namespace."""


class Sample(NamedTuple):
    """Of a queue: how many keys it has that are not idle, and those of them that were looked at, with what queued each
    where that is known.
    """

    queue: str
    total: int
    keys: Mapping[str, Triggers | None]


def namespaces_of(samples: Sequence[Sample]) -> tuple[NamespaceLook, ...]:
    """The namespaces with most keys first. Each key looked at stands for as many as its queue has for one seen."""
    weights: dict[str, Counter[str]] = {}
    causes: dict[str, Counter[str]] = {}
    seen: Counter[str] = Counter()
    for sample in samples:
        for namespace, count in Counter(map(_namespace, sample.keys)).items():
            seen[namespace] += count
            by_queue = weights.setdefault(namespace, Counter())
            by_queue[sample.queue] += round(count * max(sample.total, len(sample.keys)) / len(sample.keys))
        for key, triggers in sample.keys.items():
            if triggers is not None:
                causes.setdefault(_namespace(key), Counter())[_kind_of(triggers.last)] += triggers.events
    total = sum(counts.total() for counts in weights.values())
    found = [
        NamespaceLook(
            name,
            counts.total(),
            counts.total() / total,
            seen[name],
            counts.most_common(1)[0][0],
            tuple(causes.get(name, Counter()).most_common(CAUSES_MAX)),
        )
        for name, counts in weights.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.keys, each.namespace)))


def _kind_of(trigger: str) -> str:
    """A trigger without its object: "set replicasets", however it was written."""
    word, _, about = trigger.partition(" ")
    word = "set" if word in ("added", "observed", "status") else word
    return f"{word} {about.partition('/')[0].partition(' ')[0]}" if word in ("set", "del", "list", "read") else word


def _namespace(key: str) -> str:
    namespace, slash, _ = key.partition("/")
    return namespace if slash else ""
