"""`oarlock status`: which processes of an `oarlock up` are running."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cli.look.view import paused_line
from oarlock.cli.options.options import output_option, state_dir_option
from oarlock.cli.options.which_up import named_or_found
from oarlock.cli.tables import show, show_json
from oarlock.sandbox.up.state_dir import StateDir, is_alive
from oarlock.workers.process.shards import names


@click.command(
    epilog="\b\nExamples:\n  oarlock status --state-dir DIR\n"
    "  oarlock status --state-dir DIR -o json | jq -r '.processes[].pid'"
)
@state_dir_option
@output_option
def status(state_dir: Path | None, output: str) -> None:
    """Print which processes of an `oarlock up` are running. Exit 0 if it runs and is ready, 1 if not.

    \b
    JSON: state_dir, running, ready, state (starting | ready | stopping | down), pid, api_url, kubeconfig, redis_url,
    metrics ({process: URL}), epoch, phase (OPEN | DRAIN | HELD | ""), paused (why the fleet is; held: its old name),
    started_ms, processes: [{role, pid, name, rq_worker, started_ms, alive}]; of an `oarlock up --shards` also shards:
    [{shard, epoch, phase, paused, held, is_open}], and epoch, phase and paused are those of shard 0
    """
    state = named_or_found(state_dir)
    facts = describe(state)
    if output == "json":
        show_json(facts)
    else:
        _print(facts)
    if not facts["ready"]:
        click.get_current_context().exit(1)


def describe(state: StateDir) -> dict[str, Any]:
    """The facts, as `-o json` prints them."""
    pid, told = state.owner_pid(), state.read_up()
    running = bool(pid)
    word = str(told.get("state", "starting")) if running else "down"
    url = state.redis_url.read_text().strip() if state.redis_url.exists() else ""
    count = int(told.get("shards", 1))
    looks = [_look(url, shard) for shard in names(count)] if running and url else []
    first = looks[0] if looks else _Look()
    return {
        "state_dir": str(state.root),
        "running": running,
        "ready": word == "ready" and bool(looks) and all(look.is_open for look in looks),
        "state": word,
        "pid": pid,
        "api_url": told.get("api_url", "") if running else "",
        "metrics": told.get("metrics", {}) if running else {},
        "kubeconfig": str(state.kubeconfig) if running else "",
        "redis_url": url if running else "",
        "epoch": first.epoch,
        "phase": first.phase,
        "paused": first.paused,
        "held": first.paused,
        **({"shards": [{**asdict(look), "held": look.paused} for look in looks]} if count > 1 else {}),
        "started_ms": told.get("started_ms", 0),
        "processes": [{**asdict(each), "alive": is_alive(each)} for each in state.read_processes()],
    }


@dataclass(frozen=True, slots=True)
class _Look:
    """The state of a shard. ``is_open``: turns begin, and the server is the epoch's own."""

    shard: str = "0"
    epoch: int = 0
    phase: str = ""
    paused: str = ""
    is_open: bool = False


def _look(url: str, shard: str) -> _Look:
    client = connect(url, timeout_s=2.0)
    try:
        seen = epoch.current(client, shard)
        paused = Inspector(client, seen.epoch, shard).pause_reason() if seen.phase == "HELD" else ""
    except BrokerUnreachable:
        return _Look(shard)  # it is being restarted: no phase then
    finally:
        client.close()
    return _Look(shard, seen.epoch, seen.phase, paused, seen.intact and seen.phase == "OPEN")


def _print(facts: dict[str, Any]) -> None:
    if not facts["running"]:
        click.echo(f"no `oarlock up` runs in {facts['state_dir']}")
        return
    now_ms = time.time_ns() // 1_000_000
    shards = facts.get("shards", [])
    life = f"{len(shards)} shards" if shards else f"epoch {facts['epoch']} {facts['phase']}"
    click.echo(f"{facts['state']}, {life}, pid {facts['pid']}, {facts['state_dir']}")
    for shard in shards:
        click.echo(f"shard {shard['shard']}: epoch {shard['epoch']} {shard['phase']}")
    for each in shards or [facts]:
        if each["paused"]:
            click.echo((f"shard {each['shard']}: " if shards else "") + paused_line(each["paused"]))
    click.echo(f"kubeconfig {facts['kubeconfig']}")
    rows = [{**each, "age_ms": now_ms - each["started_ms"]} for each in facts["processes"]]
    show(rows, {"role": "ROLE", "name": "NAME", "pid": "PID", "age_ms": "AGE", "alive": "ALIVE"}, "table")
