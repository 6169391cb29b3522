"""Who fills the queue: namespaces, from keys picked at random where there are too many to look at all. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from oarlock.cli.watch.fleet_look import NamespaceLook


class Sample(NamedTuple):
    """Of a queue: how many keys it has that are not idle, and those of them that were looked at."""

    queue: str
    total: int
    keys: Sequence[str]


def namespaces_of(samples: Sequence[Sample]) -> tuple[NamespaceLook, ...]:
    """The namespaces with most keys first. Each key looked at stands for as many as its queue has for one seen."""
    weights: dict[str, Counter[str]] = {}
    seen: Counter[str] = Counter()
    for sample in samples:
        for namespace, count in Counter(map(_namespace, sample.keys)).items():
            seen[namespace] += count
            by_queue = weights.setdefault(namespace, Counter())
            by_queue[sample.queue] += round(count * max(sample.total, len(sample.keys)) / len(sample.keys))
    total = sum(counts.total() for counts in weights.values())
    found = [
        NamespaceLook(name, counts.total(), counts.total() / total, seen[name], counts.most_common(1)[0][0])
        for name, counts in weights.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.keys, each.namespace)))


def _namespace(key: str) -> str:
    namespace, slash, _ = key.partition("/")
    return namespace if slash else ""
