"""How far the statuses of the owners are behind the pods that the fleet knows of, kind by kind."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.large.statuses import Statuses
from benchmarks.tree import Tree
from oarlock.cluster.resources import DAEMONSETS, PODS, Resource

ALL, DAEMONS, OTHERS = "all", "DaemonSets", "others"


class Behind:
    """Samples of the pods in the fleet's cache and of those that statuses tell of."""

    def __init__(self, tree: Tree, seen: Mapping[Resource, Statuses]) -> None:
        self._tree = tree
        self._seen = seen
        self._samples: dict[str, list[tuple[float, int, int]]] = {ALL: [], DAEMONS: [], OTHERS: []}

    def sample(self) -> tuple[int, int]:
        """Pods cached and pods told now, of all kinds."""
        told = {kind: each.pods for kind, each in self._seen.items()}
        all_told, of_daemons = sum(told.values()), told[DAEMONSETS]
        cached, cached_of_daemons = self._cached()
        now_s = time.monotonic()
        self._samples[ALL].append((now_s, cached, all_told))
        self._samples[DAEMONS].append((now_s, cached_of_daemons, of_daemons))
        self._samples[OTHERS].append((now_s, cached - cached_of_daemons, all_told - of_daemons))
        return cached, all_told

    @property
    def longest_s(self) -> dict[str, float]:
        """After how long at most the statuses told of as many pods as were cached, once all is told."""
        return {name: longest_s(samples) for name, samples in self._samples.items()}

    def _cached(self) -> tuple[int, int]:
        """In the cache: all pods, and those of DaemonSets."""
        redis, keys, resource = self._tree.redis, self._tree.keys, PODS.plural
        found: Any = redis.hget(keys.of("generation"), resource)
        generation = (found or b"0").decode()
        uids = [told.uid for told in list(self._seen[DAEMONSETS].owners.values())]
        of_daemons = (redis.hlen(keys.index(resource, generation, f"owner={uid}")) for uid in uids)
        return int(redis.hlen(keys.objects(resource, generation))), sum(map(int, of_daemons))


def longest_s(samples: Sequence[tuple[float, int, int]]) -> float:
    """``samples``: (when, pods cached, pods told), the last one with all of them told."""
    longest, later = 0.0, 0
    for when_s, cached, _ in samples:
        while samples[later][2] < min(cached, samples[-1][2]):
            later += 1
        longest = max(longest, samples[later][0] - when_s)
    return longest
