"""Figures and health of a whole `oarlock up`, while its processes are killed, and as a real Prometheus sees them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import yaml
from prometheus_client.parser import text_string_to_metric_families

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.workers.metrics.families import FAMILIES, INGESTOR, WORKER
from oarlock.workers.process.settings import Settings
from tests.e2e.e2e_helpers import ROOT, RunningUp, until
from tests.workers.metrics.prometheus_server import ALERTS, DASHBOARD, Prometheus

MAY_LACK = {
    "rest_client_rate_limiter_duration_seconds",
    "workqueue_adds_total",
    "oarlock_rate_limit_turns",
    "oarlock_controller_weight",
}
"""An ingestor has no rate limit of its own, Redis before 7 does not count what enters a stream, nobody set a rate."""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUp]:
    running = RunningUp(tmp_path_factory.mktemp("up") / "state", f"-f{ROOT / 'examples' / 'shop.yaml'}")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def urls(up: RunningUp) -> dict[str, str]:
    """Name of a process -> where it serves."""
    return dict(up.state.read_up()["metrics"])


@pytest.fixture(scope="module")
def prometheus(urls: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    running = Prometheus(tmp_path_factory.mktemp("prometheus"), list(urls.values()))
    yield running
    running.close()


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def values(url: str) -> dict[tuple[str, str], float]:
    """(sample, labels as text) -> value."""
    status, text = get(f"{url}/metrics")
    assert status == 200
    return {
        (sample.name, json.dumps(sample.labels, sort_keys=True)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(found: dict[tuple[str, str], float], name: str, *words: str) -> float:
    """The sum of a sample over its labels that contain all ``words``."""
    return sum(
        value for (each, labels), value in found.items() if each == name and all(word in labels for word in words)
    )


def ready(urls: dict[str, str]) -> bool:
    return all(get(f"{url}/readyz")[0] == 200 for url in urls.values())


def test_everybody_serves_what_the_table_says(up: RunningUp, urls: dict[str, str]) -> None:
    assert sorted(urls) == ["ingestor-1", "ingestor-2", "supervisor"]
    assert up.ask("status")["metrics"] == urls
    for name, url in urls.items():
        assert f"{url}/metrics  ({name})" in up.out.read_text()
        until(lambda url=url: get(f"{url}/readyz")[0] == 200, 30, f"{name} is ready")
        for path in ("livez", "healthz"):
            assert get(f"{url}/{path}") == (200, "ok")
        role = WORKER if name == "supervisor" else INGESTOR
        told = {each.name for each in FAMILIES.values() if role in each.roles} - MAY_LACK

        def all_served(url: str = url, told: set[str] = told) -> bool:
            return _names(url) - MAY_LACK == told

        until(all_served, 30, f"{name} serves all there is: nothing of a kind is served before it happened")


def _names(url: str) -> set[str]:
    families = text_string_to_metric_families(get(f"{url}/metrics")[1])
    return {f"{family.name}_total" if family.type == "counter" else family.name for family in families}


def test_no_secret_is_served(up: RunningUp, urls: dict[str, str]) -> None:
    password = re.search(r":([^:@/]+)@", up.state.read_redis_url())
    assert password is not None
    for url in urls.values():
        for path in ("metrics", "readyz?verbose", "livez?verbose", ""):
            assert password[1] not in get(f"{url}/{path}")[1]


def test_counts_stay_whole_while_workers_are_killed(up: RunningUp, urls: dict[str, str]) -> None:
    """Every key that left the queue was counted once, but for what a worker had just claimed when it was killed."""
    url, admin = urls["supervisor"], connect(up.state.read_redis_url())
    broker = RedisBroker(admin, epoch.current(admin).epoch)
    queue, kills = "daemonset", 3
    keys = [f"nowhere/key-{number}" for number in range(200)]  # nobody else touches this queue here
    before, crashed, had_entered = values(url), 0.0, _entered(broker, admin, queue)
    for _ in range(kills):
        for part in range(0, len(keys), 20):
            broker.add(queue, keys[part : part + 20])
        victim = until(lambda: up.processes("worker"), 20, "a worker")[0]
        os.kill(victim.pid, signal.SIGKILL)
        crashed += 1

        def noticed(crashed: float = crashed) -> bool:
            now = values(url)
            for name in ("oarlock_turns_total", "workqueue_queue_duration_seconds_count", "process_cpu_seconds_total"):
                assert total(now, name) >= total(before, name), "a counter never goes back"
            return total(now, "oarlock_worker_deaths_total", "crashed") == crashed + total(
                before, "oarlock_worker_deaths_total", "crashed"
            )

        until(noticed, 20, "the death is counted")
        until(lambda pid=victim.pid: pid not in [each.pid for each in up.processes("worker")], 20, "the list is true")

    def at_rest() -> bool:
        k = broker.keys
        return not (admin.xlen(k.stream(queue)) or admin.zcard(k.backlog(queue)) or admin.hlen(k.locks(queue)))

    until(at_rest, 30, "all keys are done")
    after = values(url)
    label = f'"{queue}"'
    taken = _delta(before, after, "workqueue_queue_duration_seconds_count", label)
    ended = _delta(before, after, "oarlock_turns_total", label)
    slack = kills * Settings().batch_keys_quick  # what one claim takes at most
    assert len(keys) <= taken
    out_of_work = _delta(before, after, "oarlock_failover_seconds_count", label)
    assert out_of_work <= slack
    longest_s = 10  # a supervisor sees the end of its worker at once
    assert _delta(before, after, "oarlock_failover_seconds_bucket", label, f'"le": "{longest_s}"') == out_of_work
    assert taken - slack <= ended <= taken
    entered = _entered(broker, admin, queue)
    if entered is not None and had_entered is not None:
        assert entered - had_entered - slack <= taken <= entered - had_entered
        until(lambda: total(values(url), "workqueue_adds_total", label) == entered, 20, "it is shown, within a second")
    until(lambda: total(values(url), "oarlock_workers_running") == 2, 20, "the last that was killed has a successor")
    admin.close()


def _entered(broker: RedisBroker, admin: redis.Redis, queue: str) -> int | None:
    """How many keys ever entered the queue; None with Redis before 7."""
    stream, backlog = broker.keys.stream(queue), broker.keys.backlog(queue)
    entered = admin.xinfo_stream(stream).get("entries-added") if admin.exists(stream) else 0
    passed = int(admin.get(broker.keys.passed(queue)) or 0)
    return None if entered is None else entered + passed + admin.zcard(backlog)


def _delta(before: dict[tuple[str, str], float], after: dict[tuple[str, str], float], name: str, *words: str) -> float:
    return total(after, name, *words) - total(before, name, *words)


def test_the_process_that_answers_may_be_killed(up: RunningUp, urls: dict[str, str]) -> None:
    (supervisor,) = up.processes("supervisor")

    def others() -> set[int]:
        """Children that are no workers; one that has just been forked is not in the list yet."""
        children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text().split()
        return {int(pid) for pid in children} - {each.pid for each in up.processes("worker")}

    (answering,) = until(lambda: found if len(found := others()) == 1 else None, 20, "the one that answers")
    starts = total(values(urls["supervisor"]), "oarlock_worker_starts_total")
    os.kill(answering, signal.SIGKILL)
    until(lambda: _answers(urls["supervisor"]), 20, "another one answers in its place")
    assert total(values(urls["supervisor"]), "oarlock_worker_starts_total") >= starts
    assert up.processes("supervisor") == [supervisor]


def _answers(url: str) -> bool:
    try:
        return get(f"{url}/livez") == (200, "ok")
    except OSError:
        return False


def test_silent_readers_delay_neither_the_supervisor_nor_probes(up: RunningUp, urls: dict[str, str]) -> None:
    port = int(urls["supervisor"].rpartition(":")[2])
    silent = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(100)]
    for each in silent[:50]:
        each.send(b"GET /metrics HTTP/1.1\r\nX:")
    victim = until(lambda: up.processes("worker"), 20, "a worker")[0]
    os.kill(victim.pid, signal.SIGKILL)
    assert get(f"{urls['supervisor']}/livez") == (200, "ok")
    until(lambda: victim.pid not in [each.pid for each in up.processes("worker")], 20, "the dead are reaped")
    for each in silent:
        each.close()


def test_without_redis_it_is_alive_and_not_ready(up: RunningUp, urls: dict[str, str]) -> None:
    (server,) = up.processes("redis")
    os.kill(server.pid, signal.SIGSTOP)
    try:
        for url in (urls["supervisor"], urls["ingestor-1"]):
            status, told = until(lambda url=url: _unready(url), 20, "it is not ready")
            assert status == 500
            assert "[-]redis failed: Redis did not answer" in told
            assert get(f"{url}/livez") == (200, "ok")
            found = values(url)
            assert total(found, "oarlock_redis_up") == 0
            assert not total(found, "workqueue_depth")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    until(lambda: ready(urls), 40, "all are ready again")


def _unready(url: str) -> tuple[int, str] | None:
    answer = get(f"{url}/readyz?verbose")
    return answer if answer[0] == 500 else None


def _expressions() -> list[tuple[str, str]]:
    panels = [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]
    assert len(panels) > 30
    return [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]


KUBE_CONTROLLER_MANAGER = (
    'sum(up{job="oarlock"})',
    'sum(rate(workqueue_adds_total{job="oarlock"}[5m])) by (instance, name)',
    'sum(rate(workqueue_depth{job="oarlock"}[5m])) by (instance, name)',
    "histogram_quantile(0.99, sum(rate(workqueue_queue_duration_seconds_bucket[5m])) by (instance, name, le))",
    "histogram_quantile(0.99, sum(rate(workqueue_work_duration_seconds_bucket[5m])) by (instance, name, le))",
    'sum(rate(workqueue_retries_total{job="oarlock"}[5m])) by (name)',
    'max(workqueue_unfinished_work_seconds{job="oarlock"}) by (name)',
    'max(workqueue_longest_running_processor_seconds{job="oarlock"}) by (name)',
    'sum(rate(rest_client_requests_total{job="oarlock", code=~"2.."}[5m]))',
    'histogram_quantile(0.99, sum(rate(rest_client_request_duration_seconds_bucket{verb="POST"}[5m])) by (verb, le))',
    'histogram_quantile(0.99, sum(rate(rest_client_request_duration_seconds_bucket{verb="GET"}[5m])) by (verb, le))',
    'process_resident_memory_bytes{job="oarlock"}',
    'rate(process_cpu_seconds_total{job="oarlock"}[5m])',
)
"""What dashboards for kube-controller-manager ask."""


def test_every_panel_and_every_alert_has_data(up: RunningUp, prometheus: Prometheus) -> None:
    def now(expression: str) -> str:
        return expression.replace("$__rate_interval", "1m").replace("$job", ".*").replace("$queue", ".*")

    admin = connect(up.state.read_redis_url())
    RedisBroker(admin, epoch.current(admin).epoch).steer("limit", "rate daemonset", "by=test rate=1000")
    waiting = {(title, now(expression)) for title, expression in _expressions()}
    waiting |= {("of kube-controller-manager", expression) for expression in KUBE_CONTROLLER_MANAGER}
    if int(up.redis().info("server")["redis_version"].split(".")[0]) < 7:  # it does not count what enters a stream
        waiting = {each for each in waiting if "workqueue_adds_total" not in each[1]}

    def all_seen() -> bool:
        for each in list(waiting):
            if prometheus.query(each[1]):
                waiting.discard(each)
        return not waiting

    try:
        until(all_seen, 60, "every panel has data", pause_s=0.5)
    except AssertionError:
        pytest.fail(f"without data: {sorted(waiting)}")
    rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {rule["alert"] for rule in _alerts()}
    for rule in rules:
        assert rule["health"] in ("ok", "unknown"), rule
        assert rule["state"] != "firing", rule
        for name in _series(rule["query"]):
            assert prometheus.query(f"count({name})"), f"{rule['name']} names {name}, which nobody serves"
    assert {rule["health"] for rule in rules} != {"unknown"}


def _alerts() -> list[dict[str, str]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def _series(expression: str) -> set[str]:
    named = set(re.findall(r"\b(?:oarlock|workqueue|rest_client|process|python)_[a-z_]+", expression))
    assert named, expression
    return named
