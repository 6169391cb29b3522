"""What processes counted in their rows, as samples."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from oarlock.cluster.access import config
from oarlock.cluster.access.credentials import ConfigError
from oarlock.controllers.registry import WATCHED
from oarlock.workers.counters.layout import (
    CLAIM_WAIT_S,
    CODES,
    DEATHS,
    GC_FACTS,
    GC_GENERATIONS,
    METHODS,
    OUTCOMES,
    WORK_S,
    Histogram,
    Layout,
)
from oarlock.workers.counters.table import Exemplar, newest
from oarlock.workers.metrics.samples import Samples
from oarlock.workers.process.settings import Settings

GC_NAMES = {
    "collections": "python_gc_collections_total",
    "collected": "python_gc_objects_collected_total",
    "uncollectable": "python_gc_objects_uncollectable_total",
}


def rebucket(bounds: Sequence[float], histogram: Histogram, counts: Sequence[int]) -> list[int]:
    """The counts of a histogram whose bounds are some of another's."""
    found = [0] * (len(bounds) + 1)
    at = 0
    for upper, count in zip((*histogram.bounds, float("inf")), counts, strict=True):
        while at < len(bounds) and upper > bounds[at]:
            at += 1
        found[at] += count
    return found


def last_in(
    bounds: Sequence[float], histogram: Histogram, exemplars: Sequence[Exemplar | None]
) -> list[Exemplar | None]:
    """The last exemplar of each bucket of a histogram whose bounds are some of another's."""
    groups: list[list[Exemplar | None]] = [[] for _ in (*bounds, None)]
    for upper, exemplar in zip((*histogram.bounds, float("inf")), exemplars, strict=True):
        groups[bisect_left(bounds, upper)].append(exemplar)
    return [newest(group) for group in groups]


class CountSamples:
    """``ints`` and ``sums``: cells summed over rows. ``exemplars``: of a histogram's buckets."""

    def __init__(
        self,
        samples: Samples,
        layout: Layout,
        ints: Sequence[int],
        sums: Sequence[float],
        exemplars: Callable[[Histogram], Sequence[Exemplar | None]] = lambda histogram: (),
    ) -> None:
        self._samples, self._layout, self._ints, self._sums = samples, layout, ints, sums
        self._exemplars = exemplars

    def put_queues(self) -> None:
        """Turns, how long keys waited for them, and what they did that upstream counts."""
        losses = 0
        for queue, cells in self._layout.queues.items():
            waits, wait_s = self._counts(cells.wait), self._sums[cells.wait.sum]
            for name, bounds in (
                ("workqueue_queue_duration_seconds", WORK_S),
                ("oarlock_claim_wait_seconds", CLAIM_WAIT_S),
            ):
                counts, exemplars = rebucket(bounds, cells.wait, waits), self._exemplars(cells.wait)
                newest_of = last_in(bounds, cells.wait, exemplars) if exemplars else ()
                self._samples.histogram(name, bounds, counts, wait_s, queue, exemplars=newest_of)
            self._put_histogram("workqueue_work_duration_seconds", cells.work, queue)
            self._put_histogram("oarlock_failover_seconds", cells.failover, queue)
            self._samples.put("workqueue_retries_total", self._ints[cells.retries], queue)
            for at, outcome in enumerate(OUTCOMES):
                count = self._ints[cells.outcomes + at]
                self._samples.put("oarlock_turns_total", count, queue, outcome)
                losses += count if outcome == "lost" else 0
        self._samples.put("oarlock_lease_losses_total", losses)
        self._put_histogram("replicaset_controller_sorting_deletion_age_ratio", self._layout.age_ratio)
        for queue, skips in self._layout.skips.items():
            for resource, at in skips.items():
                group = WATCHED[resource].api_version.rpartition("/")[0]
                self._samples.put(f"{queue}_controller_stale_sync_skips_total", self._ints[at], group, resource)

    def put_requests(self, host: str) -> None:
        """Requests: a code appears once there was an answer with it, as upstream."""
        for method in METHODS:
            for at, code in enumerate(CODES):
                count = self._ints[self._layout.codes[method] + at]
                if count:
                    self._samples.put("rest_client_requests_total", count, code, host, method)
            for name, histograms in (
                ("rest_client_request_duration_seconds", self._layout.requests),
                ("rest_client_rate_limiter_duration_seconds", self._layout.limits),
            ):
                if any(self._counts(histograms[method])):
                    self._put_histogram(name, histograms[method], host, method)

    def put_gc(self) -> None:
        """The garbage collector's runs."""
        for at in range(GC_GENERATIONS * len(GC_FACTS)):
            generation, fact = divmod(at, len(GC_FACTS))
            self._samples.put(GC_NAMES[GC_FACTS[fact]], self._ints[self._layout.gc + at], str(generation))

    def put_supervision(self) -> None:
        """What a supervisor did for its workers."""
        layout, ints = self._layout, self._ints
        self._samples.put("oarlock_worker_starts_total", ints[layout.starts])
        for at, how in enumerate(DEATHS):
            self._samples.put("oarlock_worker_deaths_total", ints[layout.deaths + at], how)
        self._samples.put("oarlock_reclaims_total", ints[layout.reclaims])
        self._samples.put("oarlock_releases_total", ints[layout.releases])
        self._samples.put("oarlock_epochs_lost_total", ints[layout.epochs_lost])

    def _counts(self, histogram: Histogram) -> Sequence[int]:
        return self._ints[histogram.counts : histogram.counts + len(histogram.bounds) + 1]

    def _put_histogram(self, name: str, histogram: Histogram, *labels: str) -> None:
        counts, total = self._counts(histogram), self._sums[histogram.sum]
        exemplars = self._exemplars(histogram)
        self._samples.histogram(name, histogram.bounds, counts, total, *labels, exemplars=exemplars)


def host_label(settings: Settings) -> str:
    """The API server's host and port, never a user or a password; "" where no server is known (yet)."""
    try:
        parts = urlsplit(config.load(settings.kubeconfig or None).server)
        host = parts.hostname or ""
        return f"{host}:{parts.port}" if parts.port else host
    except (ConfigError, ValueError):
        return ""
