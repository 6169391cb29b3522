"""What is served: its names, labels and buckets, in both formats, and the page that tells of it."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.controllers.registry import WATCHED, all_queues
from oarlock.workers.counters.request_counts import RequestCounts
from oarlock.workers.counters.supervision import Supervision
from oarlock.workers.counters.table import Row, Table, own_row
from oarlock.workers.counters.turn_counts import TurnCounts
from oarlock.workers.ingest.ingestor import ReflectorStatus, Status
from oarlock.workers.ingest.reflector import ReflectorState
from oarlock.workers.metrics.families import FAMILIES, INGESTOR, SAID, WORKER, Family
from oarlock.workers.metrics.fleet_reader import COUNTS, FleetFigures
from oarlock.workers.metrics.latest import Look
from oarlock.workers.metrics.serving import ingestor_view, supervisor_view
from oarlock.workers.metrics.serving.endpoints import Endpoints
from oarlock.workers.metrics.serving.http_server import Request, Response
from oarlock.workers.metrics.serving.ingestor_view import IngestorView
from oarlock.workers.metrics.serving.supervisor_view import SupervisorView
from tests import ROOT
from tests.docs import metric_tables
from tests.manual_clock import ManualClock

DOCS = ROOT / "docs"
TRACE = "0af7651916cd43dd8448eb211c80319c"
HOST = "api.example:6443"


def figures() -> FleetFigures:
    found = FleetFigures("0", 3, True, "OPEN", 1_000_000, 2_000_000, registered=2, idle=1, history_bytes=640, pauses=1)
    others = {"workqueue_adds_total": 9, "oarlock_oldest_queued_seconds": 1.5, "oarlock_record_age_seconds": 30.0}
    others["oarlock_rate_limit_turns"], others["oarlock_controller_weight"] = 2.5, 4.0
    found.queues = {queue: {**dict.fromkeys(COUNTS, 2), **others} for queue in all_queues()}
    found.watermark_age_s = dict.fromkeys(WATCHED, 0.25)
    found.objects = dict.fromkeys(WATCHED, 10)
    return found


class Asked:
    """In place of Latest."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def look(self) -> Look:
        return self._look


class Told:
    """In place of an Ingestor."""

    def status(self, now_ms: int) -> Status:
        reflector = ReflectorStatus(ReflectorState.WATCHING, "7", 1_500, 10, 4, 1, 2)
        return Status("i", "member", 3, "OPEN", dict.fromkeys(WATCHED, reflector))


def requested(row: Row) -> None:
    requests = RequestCounts(row)
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        requests.answered(method, 200, 0.01)
        requests.limited(method, 0.0)
    requests.answered("POST", 0, 4.0)


def worker_endpoints(look: Look) -> Endpoints:
    clock, table = ManualClock(), Table(2)
    row, supervision = table.rows[0], Supervision(table)
    supervision.tick(clock.mono_ms())
    supervision.started(row, 2**22 + 1)  # no such process
    counts = TurnCounts(row)
    counts.ranked("replicaset", [1])
    for queue, needs in (("replicaset", "pods=7"), ("daemonset", "daemonsets=7")):
        counts.claimed(Batch(queue, [Claim(queue, "a/1", "n", None, [], None, needs, False, 0)], {}, {}, []))
    again = Claim("replicaset", "a/1", "n", None, [], None, "", False, 0, now_ms=9_000, why="8000 1 lost w-1 6000")
    counts.claimed(Batch("replicaset", [again], {}, {}, [7]))
    begun_ns = counts.begun()
    counts.worked("replicaset", begun_ns, 0, TRACE)
    counts.traced(Batch("replicaset", [again], {}, {}, [7]), again, TRACE)
    counts.finished(Finish("replicaset", "a/1", "n", Verdict.OK, 10), False, 0)
    counts.begun()
    requested(row)
    view = SupervisorView(table, 1, HOST, clock.mono_ms)
    return Endpoints(Asked(look), view.put, view.alive, view.ready)  # type: ignore[arg-type]


def ingestor_endpoints(look: Look) -> Endpoints:
    clock, row = ManualClock(), own_row()
    requested(row)
    view = IngestorView(Told(), row, HOST, clock.mono_ms, lambda: 0)  # type: ignore[arg-type]
    return Endpoints(Asked(look), view.put, view.alive, view.ready)  # type: ignore[arg-type]


ENDPOINTS = {WORKER: worker_endpoints, INGESTOR: ingestor_endpoints}
every_role = pytest.mark.parametrize("role", [WORKER, INGESTOR])


def scrape(role: str, look: Look | None = None, accept: str = "") -> Response:
    async def ask() -> Response:
        endpoints = ENDPOINTS[role](look or Look((figures(),), 0.002))
        return await endpoints(Request("/metrics", "", {"accept": accept}))

    return asyncio.run(ask())


def samples(role: str, look: Look | None = None) -> dict[str, list[Sample]]:
    """Family, as exposed -> its samples."""
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(scrape(role, look).body.decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert name not in found
        found[name] = family.samples
        told = FAMILIES[name]
        assert (family.type, family.documentation) == (told.kind, told.help)
    return found


def labels_of(family: Family) -> set[str]:
    return {*family.labels, *(["le"] if family.kind == "histogram" else [])}


@every_role
def test_everything_in_the_table_is_served_with_its_labels_and_nothing_else(role: str) -> None:
    found = samples(role)
    assert set(found) == {name for name, family in FAMILIES.items() if role in family.roles}
    for name, each in found.items():
        assert set().union(*(sample.labels for sample in each)) == labels_of(FAMILIES[name]), name


@every_role
def test_without_redis_what_is_of_the_process_is_still_served(role: str) -> None:
    found = samples(role, Look(None, 1.0))
    fleet = {name for name, family in FAMILIES.items() if family.scope == "fleet"}
    assert set(found) == {name for name, family in FAMILIES.items() if role in family.roles} - fleet
    assert [sample.value for sample in found["oarlock_redis_up"]] == [0]


@every_role
def test_both_formats(role: str) -> None:
    plain = scrape(role)
    assert plain.content_type.startswith("text/plain; version=")
    modern = scrape(role, accept="application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    assert modern.content_type.startswith("application/openmetrics-text; version=1.0.0")
    text = modern.body.decode()
    assert text.endswith("# EOF\n")
    as_before = {family.name for family in text_string_to_metric_families(plain.body.decode())}
    assert {family.name for family in openmetrics.text_string_to_metric_families(text)} == as_before


def test_exemplars_are_told_in_openmetrics_alone() -> None:
    accept = "application/openmetrics-text;version=1.0.0"
    text = scrape(WORKER, accept=accept).body.decode()
    found = {
        (family.name, sample.labels["le"]): sample.exemplar
        for family in openmetrics.text_string_to_metric_families(text)
        for sample in family.samples
        if sample.exemplar is not None
    }
    assert {name for name, _ in found} == {
        "workqueue_queue_duration_seconds",
        "workqueue_work_duration_seconds",
        "oarlock_claim_wait_seconds",
    }
    of_wait = found["oarlock_claim_wait_seconds", "0.01"]
    assert (of_wait.labels, of_wait.value) == ({"trace_id": TRACE}, 0.007)
    assert found["workqueue_queue_duration_seconds", "0.01"].value == 0.007
    assert TRACE not in scrape(WORKER).body.decode()


UPSTREAM = {
    "workqueue_depth": {"name"},
    "workqueue_adds_total": {"name"},
    "workqueue_queue_duration_seconds_bucket": {"name", "le"},
    "workqueue_work_duration_seconds_bucket": {"name", "le"},
    "workqueue_unfinished_work_seconds": {"name"},
    "workqueue_longest_running_processor_seconds": {"name"},
    "workqueue_retries_total": {"name"},
    "replicaset_controller_sorting_deletion_age_ratio_bucket": {"le"},
    "replicaset_controller_stale_sync_skips_total": {"group", "resource"},
    "daemonset_controller_stale_sync_skips_total": {"group", "resource"},
    "rest_client_requests_total": {"code", "host", "method"},
    "rest_client_request_duration_seconds_bucket": {"host", "verb", "le"},
    "rest_client_rate_limiter_duration_seconds_bucket": {"host", "verb", "le"},
    "process_cpu_seconds_total": set(),
    "process_resident_memory_bytes": set(),
    "process_start_time_seconds": set(),
}
"""Upstream: staging/src/k8s.io/component-base/metrics/prometheus/{workqueue,restclient}, pkg/controller/*/metrics."""


def test_series_of_upstream_have_its_names_and_at_least_its_labels() -> None:
    found: dict[str, set[str]] = {}
    for each in samples(WORKER).values():
        for sample in each:
            found.setdefault(sample.name, set()).update(sample.labels)
    for name, labels in UPSTREAM.items():
        assert labels <= found[name], name
        assert found[name] - labels <= {"shard"}, name
    queues = {sample.labels["name"] for sample in samples(WORKER)["workqueue_depth"]}
    assert queues == {"replicaset", "replicationmanager", "daemonset", "deployment", "daemonset-node-updates"}


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("workqueue_queue_duration_seconds", "1e-08 1e-07 1e-06 1e-05 0.0001 0.001 0.01 0.1 1 10 +Inf"),
        ("workqueue_work_duration_seconds", "1e-08 1e-07 1e-06 1e-05 0.0001 0.001 0.01 0.1 1 10 +Inf"),
        ("replicaset_controller_sorting_deletion_age_ratio", "0.25 0.5 1 2 4 8 +Inf"),
        ("rest_client_request_duration_seconds", "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60 +Inf"),
        ("rest_client_rate_limiter_duration_seconds", "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60 +Inf"),
    ],
)
def test_buckets_are_upstreams(name: str, spelled: str) -> None:
    buckets = [sample for sample in samples(WORKER)[name] if sample.name.endswith("_bucket")]
    one = [
        sample
        for sample in buckets
        if sample.labels.items() - {("le", sample.labels["le"])} <= buckets[0].labels.items()
    ]
    assert [sample.labels["le"] for sample in one] == spelled.split()
    values = [sample.value for sample in one]
    assert values == sorted(values), "cumulative"


def test_what_was_counted_is_what_is_served() -> None:
    found = samples(WORKER)

    def value(family: str, suffix: str = "", **labels: str) -> float:
        (one,) = (
            each for each in found[family] if each.name == family + suffix and labels.items() <= each.labels.items()
        )
        return one.value

    assert value("workqueue_queue_duration_seconds", "_count", name="replicaset") == 1
    assert value("workqueue_queue_duration_seconds", "_bucket", name="replicaset", le="0.001") == 0
    assert value("workqueue_queue_duration_seconds", "_bucket", name="replicaset", le="0.01") == 1
    assert value("oarlock_claim_wait_seconds", "_bucket", queue="replicaset", le="0.005") == 0
    assert value("oarlock_claim_wait_seconds", "_sum", queue="replicaset") == pytest.approx(0.007)
    assert value("oarlock_failover_seconds", "_sum", queue="replicaset") == 3
    assert value("oarlock_failover_seconds", "_bucket", queue="replicaset", le="2.5") == 0
    assert value("oarlock_failover_seconds", "_bucket", queue="replicaset", le="5") == 1
    assert value("oarlock_turns_total", queue="replicaset", outcome="done") == 1
    assert value("workqueue_retries_total", name="replicaset") == 1
    assert value("workqueue_unfinished_work_seconds", name="replicaset") > 0
    assert value("workqueue_unfinished_work_seconds", name="daemonset") == 0
    assert value("rest_client_requests_total", code="<error>", method="POST", host=HOST) == 1
    assert value("replicaset_controller_sorting_deletion_age_ratio", "_count") == 1
    assert value("replicaset_controller_stale_sync_skips_total", group="", resource="pods") == 1
    assert value("daemonset_controller_stale_sync_skips_total", group="apps", resource="daemonsets") == 1
    assert value("oarlock_workers_running") == 1
    assert value("oarlock_epoch_phase", phase="OPEN", shard="0") == 1
    assert value("oarlock_epoch_phase", phase="HELD", shard="0") == 0


def test_help_says_how_figures_of_several_processes_are_put_together() -> None:
    for family in FAMILIES.values():
        assert family.help.endswith(SAID[family.scope])
        assert ("shard" in family.labels) == (family.scope == "fleet")
        assert family.name.endswith("_total") == (family.kind == "counter")


def test_the_page_has_the_table_that_is_served() -> None:
    page = (DOCS / "metrics.md").read_text()
    assert page.partition(metric_tables.MARK)[2] == metric_tables.tables(), (
        "make it anew: python -m tests.docs.metric_tables"
    )


def test_the_page_tells_the_checks_and_their_limits() -> None:
    head = (DOCS / "metrics.md").read_text().partition(metric_tables.MARK)[0]
    for endpoints in (worker_endpoints, ingestor_endpoints):
        made = endpoints(Look((figures(),), 0.0))
        for check in made._ready(Look(None, 0.0)):
            assert f"`{check}`" in head, check
    for limit_ms in (supervisor_view.TICK_LIMIT_MS, ingestor_view.TICK_LIMIT_MS, ingestor_view.IO_LIMIT_MS):
        assert f" for {limit_ms // 1_000} s" in head
    assert f" for {ingestor_view.DEAF_MS // 1_000} s" in head


@pytest.mark.parametrize("path", ["/", "/metrics/x", "/nothing", "/debug/pprof", "//metrics", "/readyz/none"])
def test_other_paths(path: str) -> None:
    answer = asyncio.run(worker_endpoints(Look(None, 0.0))(Request(path, "")))
    assert answer.status == (200 if path == "/" else 404)
