"""The head of `oarlock top`: the fleet in a dozen figures, and what is wrong with it. Pure."""

from __future__ import annotations

from oarlock.cli.look.budget import budget_line
from oarlock.cli.look.hearings import hearing_lines
from oarlock.cli.look.view import asked_pause_line, paused_line
from oarlock.cli.tables import span
from oarlock.cli.watch.fleet_look import FleetLook, ShardLook
from oarlock.cli.watch.rates import Rates

Figures = dict[str, str]
"""Name -> text, in the order in which they are shown."""


def fleet_figures(look: FleetLook, rates: Rates) -> Figures:
    """The epoch, the age of the view (of the cache), workers, rates, the API budget if any, memory of Redis."""
    asked = f" ({len(look.api)} of {look.processes} processes)" if len(look.api) < look.processes else ""
    return {
        "epoch": _epochs(look),
        "view": span(look.view_age_ms),
        "workers": f"{_sum(look, 'registered')}, {_sum(look, 'idle')} idle",
        "turns/s": _rate(rates.turns),
        "API calls/s": _rate(rates.calls) + asked,
        "429s/s": _rate(rates.throttled),
        **_budget(look),
        "Redis": _memory(look),
    }


def key_figures(look: FleetLook) -> Figures:
    """How many keys are in which state, in all queues together."""
    counts = {
        "queued": "queued",
        "in work": "in_work",
        "delayed": "delayed",
        "failing": "failing",
        "parked": "parked",
        **({"held": "held"} if look.total("held") else {}),
    }
    oldest = max((each.oldest_ms for each in look.queues if each.oldest_ms is not None), default=None)
    return {title: f"{look.total(count):,}" for title, count in counts.items()} | {"oldest": span(oldest)}


def problems_of(look: FleetLook) -> list[str]:
    """What keeps the fleet from its work, or this look from seeing it, a line each."""
    several = len(look.shards) + len(look.away) > 1
    found = [_of(shard, several) + f"does not answer: {reason}" for shard, reason in look.away]
    for each in look.shards:
        found += [_of(each.shard, several) + problem for problem in _problems(each)]
    return found


def size(count: int) -> str:
    """Bytes as short text: 850 B, 12.3 MB."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1_000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1_000
    return f"{value:.1f} TB"


def _problems(shard: ShardLook) -> list[str]:
    if not shard.epoch:
        return ["no epoch; is an ingestor running?"]
    found = []
    if not shard.intact:
        found.append("the server has lost or changed its data: an ingestor will begin a new epoch")
    if shard.phase == "DRAIN":
        found.append("no turn begins yet: the epoch is new, and late writes are waited out")
    if shard.paused:
        found.append(paused_line(shard.paused))
    if shard.budget is not None and (shard.budget.wait_ms or shard.budget.qps < shard.budget.qps_most):
        found.append(budget_line(shard.budget))
    found += [asked_pause_line(pause, shard.now_ms) for pause in shard.pauses]
    if not shard.registered:
        found.append("no worker is registered; start some with `oarlock worker`")
    return found + hearing_lines(shard.ingestors) + [f"not read: {problem}" for problem in shard.unread]


def _of(shard: str, several: bool) -> str:
    return f"shard {shard}: " if several else ""


def _epochs(look: FleetLook) -> str:
    told = [f"{each.epoch} {each.phase}".strip() for each in look.shards]
    return (
        told[0]
        if len(told) == 1
        else ", ".join(f"{each.shard}: {of}" for each, of in zip(look.shards, told, strict=True))
    )


def _sum(look: FleetLook, count: str) -> int:
    return sum(getattr(each, count) or 0 for each in look.shards)


def _budget(look: FleetLook) -> Figures:
    """Of all shards that have one, as each has its part of it."""
    found = [each.budget for each in look.shards if each.budget is not None]
    if not found:
        return {}
    said = f"{sum(each.qps for each in found):g} of {sum(each.qps_most for each in found):g}/s"
    if most := sum(each.in_flight_most for each in found):
        said += f", {sum(each.in_flight for each in found)} of {most} under way"
    return {"API budget": said}


def _rate(a_second: float | None) -> str:
    if a_second is None:
        return "-"
    return f"{a_second:.1f}" if a_second < 100 else f"{a_second:,.0f}"


def _memory(look: FleetLook) -> str:
    """Of all servers; several shards may lie on one."""
    servers = {each.server.get("run_id", each.shard): each for each in look.shards}
    used, most = (
        sum(each.memory_bytes for each in servers.values()),
        sum(each.memory_max_bytes for each in servers.values()),
    )
    return f"{size(used)} of {size(most)}" if most else size(used)
