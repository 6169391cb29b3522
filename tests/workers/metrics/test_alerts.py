"""Each alert fires on the series it is for and on nothing else, by Prometheus's own rule tests; each is explained."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from oarlock.workers.metrics.families import FAMILIES
from tests.workers.metrics.prometheus_server import ALERTS, DASHBOARD, ROOT, need

SHARD = 'shard="0"'
BUILD = 'oarlock_build_info{job="oarlock", instance="w:1"}'
WHO = 'job="oarlock", instance="w:1"'
REQUESTS = "rest_client_requests_total"
LIMITER = "rest_client_rate_limiter_duration_seconds_bucket"

FIRING: dict[str, dict[str, str]] = {
    "OarlockAbsent": {},
    "OarlockRedisDown": {f"oarlock_redis_up{{{WHO}}}": "0x60"},
    "OarlockHeld": {f"oarlock_held{{{SHARD}}}": "1x60"},
    "OarlockEpochNotOpen": {
        f'oarlock_epoch_phase{{phase="OPEN", {SHARD}}}': "0x60",
        f"oarlock_held{{{SHARD}}}": "0x60",
    },
    "OarlockEpochsChange": {f"oarlock_epoch{{{SHARD}}}": "1+1x60"},
    "OarlockCacheOld": {f'oarlock_watermark_age_seconds{{resource="pods", {SHARD}}}': "0+60x60"},
    "OarlockWatchDeaf": {f'oarlock_watch_heard_age_seconds{{resource="pods", {WHO}}}': "0+60x60"},
    "OarlockNoWorkers": {
        f"oarlock_workers_registered{{{SHARD}}}": "0x60",
        f'workqueue_depth{{name="replicaset", {SHARD}}}': "3x60",
    },
    "OarlockQueueSlow": {f'oarlock_oldest_queued_seconds{{queue="replicaset", {SHARD}}}': "90x60"},
    "OarlockKeysParked": {f'oarlock_keys_parked{{queue="replicaset", {SHARD}}}': "1x60"},
    "OarlockTurnsFail": {
        f'oarlock_turns_total{{queue="replicaset", outcome="failed", {WHO}}}': "0+20x60",
        f'oarlock_turns_total{{queue="replicaset", outcome="done", {WHO}}}': "0+80x60",
    },
    "OarlockKeysFail": {f'oarlock_keys_failing{{queue="replicaset", {SHARD}}}': "1x60"},
    "OarlockWorkersCrash": {f'oarlock_worker_deaths_total{{how="crashed", {WHO}}}': "0+1x60"},
    "OarlockWritesUnanswered": {f'oarlock_record_age_seconds{{queue="replicaset", {SHARD}}}': "400x60"},
    "OarlockRedisMemoryHigh": {
        f"oarlock_redis_memory_bytes{{{SHARD}}}": "90x60",
        f"oarlock_redis_memory_max_bytes{{{SHARD}}}": "100x60",
    },
    "OarlockApiErrors": {
        f'{REQUESTS}{{code="<error>", {WHO}}}': "0+10x60",
        f'{REQUESTS}{{code="503", {WHO}}}': "0+10x60",
        f'{REQUESTS}{{code="200", {WHO}}}': "0+80x60",
    },
    "OarlockForbidden": {f'{REQUESTS}{{code="403", {WHO}}}': "0+1x60"},
    "OarlockRateLimited": {
        f'{LIMITER}{{le="4", {WHO}}}': "0+1x60",
        f'{LIMITER}{{le="8", {WHO}}}': "0+60x60",
        f'{LIMITER}{{le="+Inf", {WHO}}}': "0+60x60",
    },
    "OarlockProcessHangs": {f"oarlock_tick_age_seconds{{{WHO}}}": "40x60"},
}
"""Alert -> series that let it fire: a value a minute."""

WELL = {
    f"oarlock_redis_up{{{WHO}}}": "1x60",
    f"oarlock_held{{{SHARD}}}": "0x60",
    f'oarlock_epoch_phase{{phase="OPEN", {SHARD}}}': "1x60",
    f"oarlock_epoch{{{SHARD}}}": "1x30 2x30",
    f'oarlock_watermark_age_seconds{{resource="pods", {SHARD}}}': "1x60",
    f'oarlock_watch_heard_age_seconds{{resource="pods", {WHO}}}': "60x60",
    f"oarlock_workers_registered{{{SHARD}}}": "0x60",
    f'workqueue_depth{{name="replicaset", {SHARD}}}': "0x60",
    f'oarlock_oldest_queued_seconds{{queue="replicaset", {SHARD}}}': "0 90 0 90x2 0x60",
    f'oarlock_keys_parked{{queue="replicaset", {SHARD}}}': "0x60",
    f'oarlock_turns_total{{queue="replicaset", outcome="failed", {WHO}}}': "0+1x60",
    f'oarlock_turns_total{{queue="replicaset", outcome="done", {WHO}}}': "0+80x60",
    f'oarlock_keys_failing{{queue="replicaset", {SHARD}}}': "1x20 0x40",
    f'oarlock_worker_deaths_total{{how="crashed", {WHO}}}': "0x20 1x40",
    f'oarlock_worker_deaths_total{{how="left", {WHO}}}': "0+1x60",
    f'oarlock_record_age_seconds{{queue="replicaset", {SHARD}}}': "4x60",
    f"oarlock_redis_memory_bytes{{{SHARD}}}": "90x60",
    f"oarlock_redis_memory_max_bytes{{{SHARD}}}": "0x60",
    f'{REQUESTS}{{code="<error>", {WHO}}}': "0+1x60",
    f'{REQUESTS}{{code="409", {WHO}}}': "0+40x60",
    f'{REQUESTS}{{code="200", {WHO}}}': "0+80x60",
    f'{REQUESTS}{{code="403", job="another", instance="x:1"}}': "0+9x60",
    f'{LIMITER}{{le="4", {WHO}}}': "0+60x60",
    f'{LIMITER}{{le="+Inf", {WHO}}}': "0+60x60",
    f"oarlock_tick_age_seconds{{{WHO}}}": "1x60",
}
"""A fleet that is well, with what may happen to it."""


def rules() -> list[dict[str, str]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def series(given: dict[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": values} for name, values in given.items()]


def test_rules_are_good_and_fire_when_they_should(tmp_path: Path) -> None:
    """Each at 59 minutes of its own series; none on those of a fleet that is well, at any of three moments."""
    promtool = need("promtool")
    assert set(FIRING) == {rule["alert"] for rule in rules()}
    names = [rule["alert"] for rule in rules()]
    well = series(WELL | {BUILD: "1x60"})
    tests = [
        {
            "interval": "1m",
            "input_series": well,
            "promql_expr_test": [
                {
                    "expr": f'ALERTS{{alertstate="firing", alertname="{name}"}}',
                    "eval_time": f"{minute}m",
                    "exp_samples": [],
                }
                for name in names
                for minute in (19, 39, 59)
            ],
        }
    ]
    for name, given in FIRING.items():
        others = {} if name == "OarlockAbsent" else {BUILD: "1x60"}
        counted = f'count(ALERTS{{alertstate="firing", alertname="{name}"}})'
        tests.append(
            {
                "interval": "1m",
                "input_series": series(given | others),
                "promql_expr_test": [
                    {"expr": counted, "eval_time": "59m", "exp_samples": [{"labels": "{}", "value": 1}]}
                ],
            }
        )
    asked = tmp_path / "tests.yaml"
    asked.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}))
    for command in (["check", "rules", str(ALERTS)], ["test", "rules", str(asked)]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_each_alert_is_explained(rule: dict[str, dict[str, str]]) -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text()
    name = str(rule["alert"])
    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"
    (section,) = re.findall(rf"^## {name}\n(.*?)(?=^## |\Z)", runbook, re.DOTALL | re.MULTILINE)
    for word in ("**Means:**", "**Look:**", "**Do:**"):
        assert word in section
    assert rule["labels"]["severity"] in ("critical", "warning")


def test_the_runbook_has_no_section_without_an_alert() -> None:
    titles = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert titles == [rule["alert"] for rule in rules()]


def test_queries_name_only_what_is_served() -> None:
    """Also where there is no Prometheus to ask."""
    expressions = [str(rule["expr"]) for rule in rules()]
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        expressions += [target["expr"] for target in panel.get("targets", ())]
    for expression in expressions:
        for name in re.findall(r"\b(?:oarlock|workqueue|rest_client|process|python)_[a-z_]+", expression):
            family = FAMILIES.get(name) or FAMILIES[name.removesuffix("_bucket")]
            assert (family.kind == "histogram") == name.endswith("_bucket"), expression
            if family.scope == "fleet" and "oarlock_redis_memory" not in name:
                assert re.search(r"\b(max|min)\b", expression), f"every process gives the same: {expression}"


def test_panels_have_units_places_and_no_two_the_same() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert [panel["title"] for panel in panels if panel["type"] == "row"] == [
        "Fleet health",
        "Each controller: rate, errors, duration",
        "Failover",
        "Queues",
        "Pauses, rates, histories",
        "Turns",
        "API server",
        "Redis, epoch, processes",
    ]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            assert panel["datasource"]["uid"] == "${datasource}"
