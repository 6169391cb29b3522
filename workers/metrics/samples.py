"""Gathers samples into the families of the table, and refuses what the table does not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar as Told

from oarlock.workers.counters.table import Exemplar
from oarlock.workers.metrics.families import FAMILIES, Family


class Samples(Collector):
    """One scrape's worth, for prometheus_client to write. A family without samples is not served."""

    def __init__(self) -> None:
        self._families: dict[str, Metric] = {}

    def put(self, name: str, value: float | None, *labels: str) -> None:
        """One value of a counter or gauge; None: it is not known, and left out."""
        if value is None:
            return
        made = self._of(FAMILIES[name])
        assert isinstance(made, CounterMetricFamily | GaugeMetricFamily), f"{name} is a histogram"
        made.add_metric(labels, value)

    def histogram(
        self,
        name: str,
        bounds: Sequence[float],
        counts: Sequence[int],
        total: float,
        *labels: str,
        exemplars: Sequence[Exemplar | None] = (),
    ) -> None:
        """``counts``: of each bucket alone, the last one above all ``bounds``; ``exemplars`` too, if there are any.
        Prometheus's text format has no place for them, OpenMetrics has.
        """
        made = self._of(FAMILIES[name])
        assert isinstance(made, HistogramMetricFamily), f"{name} is no histogram"
        so_far = 0
        buckets: list[tuple[str, float] | tuple[str, float, Told]] = []
        told = exemplars or [None] * len(counts)
        for bound, count, exemplar in zip((*map(_bound, bounds), "+Inf"), counts, told, strict=True):
            so_far += count
            if exemplar is None:
                buckets.append((bound, so_far))
            else:
                labelled = Told({"trace_id": exemplar.trace_id}, exemplar.value, exemplar.at_s)
                buckets.append((bound, so_far, labelled))
        made.add_metric(labels, buckets, total)

    def collect(self) -> Iterable[Metric]:
        """In the order of the table."""
        return [self._families[name] for name in FAMILIES if name in self._families]

    def _of(self, family: Family) -> Metric:
        made = self._families.get(family.name)
        if made is None:
            made = self._families[family.name] = _KINDS[family.kind](
                family.name.removesuffix("_total"), family.help, labels=family.labels
            )
        return made


_KINDS = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily}


def _bound(value_s: float) -> str:
    """As upstream's exposition spells it: 1e-08, 0.001, 1, 10."""
    return str(int(value_s)) if value_s == int(value_s) else repr(value_s)
