"""Which pods go first when there are too many.

The eight rules, and why ages are compared by order of magnitude, are upstream's:
`pkg/controller/controller_utils.go` (ActivePodsWithRanks). A comparison by rules 6 and 8 is not transitive
in corner cases, so the order of many alike pods may depend on the order given.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cmp_to_key
from itertools import groupby

from oarlock.controllers.objects.availability import is_available
from oarlock.controllers.objects.model import Pod, is_active

_NS_PER_MS = 1_000_000
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}

Key = tuple[bool, int, int, int, int]


def victims(
    candidates: Sequence[Pod], count: int, related: Iterable[Pod], now_ms: int, min_ready_seconds: int = 0
) -> tuple[Pod, ...]:
    """The `count` pods to delete, in the order of deletion; if all are deleted, in the order given.

    `related`: the pods of related owners; active ones crowd their nodes. `min_ready_seconds`: what is ready for less
    goes after what is not ready, before what is available; 0 as upstream, which does not ask how long a pod has been
    ready until rule 6.
    """
    if count >= len(candidates):
        return tuple(candidates)
    ranks = node_ranks(related)
    by_age = cmp_to_key(age_comparison(now_ms))

    def key(pod: Pod) -> Key:
        return rank_key(pod, ranks, min_ready_seconds, now_ms)

    chosen: list[Pod] = []
    for _, alike in groupby(sorted(candidates, key=key), key=key):  # rules 1 to 5 sort without a comparison
        chosen.extend(sorted(alike, key=by_age))
        if len(chosen) >= count:
            break
    return tuple(chosen[:count])


def node_ranks(related: Iterable[Pod]) -> Mapping[str, int]:
    """Node name -> number of active related pods on it. Unassigned pods share the name ""."""
    return Counter(pod.node_name for pod in related if is_active(pod))


def rank_key(pod: Pod, ranks: Mapping[str, int], min_ready_seconds: int = 0, now_ms: int = 0) -> Key:
    """Rules 1 to 5: unassigned, phase, not ready, lower deletion cost, more crowded node; smaller goes
    first.
    """
    return (
        pod.node_name != "",
        _PHASE_ORDER.get(pod.phase, 0),
        pod.ready + is_available(pod, min_ready_seconds, now_ms),
        pod.deletion_cost,
        -ranks.get(pod.node_name, 0),
    )


def age_comparison(now_ms: int) -> Callable[[Pod, Pod], int]:
    """Rules 6 to 8: ready for a shorter time, more restarts, younger."""

    def compare_ages(a: Pod, b: Pod) -> int:
        if a.ready and b.ready and a.ready_since_ms != b.ready_since_ms:
            return _newer_first(a.ready_since_ms, b.ready_since_ms, a, b, now_ms)
        if a.restarts != b.restarts:
            return -1 if a.restarts > b.restarts else 1
        if a.sidecar_restarts != b.sidecar_restarts:
            return -1 if a.sidecar_restarts > b.sidecar_restarts else 1
        if a.created_ms != b.created_ms:
            return _newer_first(a.created_ms, b.created_ms, a, b, now_ms)
        return 0

    return compare_ages


def _newer_first(a_ms: int, b_ms: int, a: Pod, b: Pod, now_ms: int) -> int:
    """Compare two different times by the order of magnitude of the age, and then by UID: arbitrary, but the same each
    time. An unknown time counts as the newest. Without `now_ms` the times themselves are compared.
    """
    if not (a_ms and b_ms and now_ms):
        return -1 if not a_ms or (b_ms and a_ms > b_ms) else 1
    bucket_a, bucket_b = age_bucket(now_ms - a_ms), age_bucket(now_ms - b_ms)
    if bucket_a != bucket_b:
        return -1 if bucket_a < bucket_b else 1
    if a.uid == b.uid:
        return 0
    return -1 if a.uid < b.uid else 1


def age_bucket(age_ms: int) -> int:
    """Whole binary logarithm of the age in nanoseconds; -1 for no age. 5 h and 8 h share a bucket."""
    return (age_ms * _NS_PER_MS).bit_length() - 1 if age_ms > 0 else -1


def age_ratios(chosen: Iterable[Pod], candidates: Iterable[Pod], now_ms: int) -> tuple[tuple[str, int], ...]:
    """For each ready victim, its UID and its age as a whole multiple of that of the youngest ready candidate.

    Observed by the metric on how well scale-downs spare old pods (upstream: sorting_deletion_age_ratio).
    Empty when the youngest has no age yet.
    """
    youngest_ms = max((pod.created_ms for pod in candidates if pod.ready), default=0)
    youngest_age_ms = now_ms - youngest_ms
    if youngest_age_ms <= 0:
        return ()
    return tuple((pod.uid, (now_ms - pod.created_ms) // youngest_age_ms) for pod in chosen if pod.ready)
