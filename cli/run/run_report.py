"""The end of `oarlock run`: whether the guarantees held, and the numbers."""

from __future__ import annotations

import click
from rich.table import Table

from oarlock.cli.problems import NotDone
from oarlock.cli.tables import print_table
from oarlock.controllers.registry import CONTROLLERS
from oarlock.sandbox.demo.deployments import DEADLINE_S
from oarlock.sandbox.demo.summary import Summary
from oarlock.sandbox.demo.takeover import Takeover


def judge(summary: Summary) -> None:
    """Raises NotDone if a guarantee was broken or could not be checked."""
    if not summary.counted:
        raise NotDone("a part of the watch history was lost: pods too many could not be counted; run it again")
    for what, counts in (("pods too many", summary.too_many), ("nodes with a pod too many", summary.duplicates)):
        if counts:
            named = ", ".join(f"{title} {count}" for title, count in counts.items())
            raise NotDone(f"there were {what}: {named}; this must not happen, please report it")
    for each in summary.rolled:
        if (each.most_down or 0) > each.down_allowed:
            raise NotDone(
                f"{each.title}: {each.most_down} nodes were down at once while its pods were replaced, and"
                f" {each.down_allowed} may be; this must not happen, please report it"
            )
    if (out := summary.rolled_out) is not None and not out.kept_limits:
        raise NotDone(
            f"{out.title}: it had {out.most} pods at most and {out.fewest} available ones at least while its {out.pods}"
            f" were replaced, {out.surge} more and {out.unavailable} fewer are allowed; this must not happen, please"
            " report it"
        )
    kills = [(bool(summary.scaled), summary.takeover), (summary.roll_killed, summary.roll_takeover)]
    if any(asked and takeover is None for asked, takeover in kills):
        raise NotDone("no worker was caught with writes in flight, so nothing was shown; run it again")
    if any(takeover is not None and not takeover.complete for _, takeover in kills):
        raise NotDone("not all keys of the killed worker were claimed again within 20 s")


def report(summary: Summary, start_s: float) -> None:
    """Print the numbers."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    rate = f"{summary.pods / summary.ready_s:.0f} pods a second" if summary.ready_s else ""
    table.add_row("ready", f"{summary.pods} pods of {_owners(summary)} in {summary.ready_s} s ({rate})")
    if summary.takeover is not None:
        _add_kill(table, summary.takeover)
        table.add_row("ready again", f"{summary.pods_after} pods in {summary.ready_again_s} s")
    for each in summary.rolled:
        down = "not counted" if each.most_down is None or not summary.counted else str(each.most_down)
        table.add_row(
            "rolled",
            f"{each.title} on {each.nodes} nodes, and back; at most {down} of them down at once,"
            f" allowed {each.down_allowed}" + (f"; {each.surge} with a second pod" if each.surge else ""),
        )
    if summary.roll_takeover is not None:
        _add_kill(table, summary.roll_takeover)
    if summary.rolled:
        table.add_row("rolled in", f"{summary.roll_s} s, back in {summary.back_s} s")
    if (out := summary.rolled_out) is not None:
        table.add_row(
            "rolled",
            f"{out.title} of {out.pods} pods in {out.rolled_s} s; at most {out.most} at once, allowed"
            f" {out.pods + out.surge}; at least {out.fewest} available, allowed {out.pods - out.unavailable}",
        )
        table.add_row(
            "stopped",
            f"by its deadline of {DEADLINE_S} s, a bad image after {out.stuck_s} s with {out.available_stuck} of"
            f" {out.pods} pods available; undone in {out.back_s} s",
        )
    told = str(sum(summary.too_many.values())) if summary.counted else "not counted"
    table.add_row("pods too many", f"{told} (from {summary.events} events of the API's own watch)")
    if "DaemonSet" in summary.owners:
        told = str(sum(summary.duplicates.values())) if summary.counted else "not counted"
        table.add_row("two on a node", told)
    table.add_row("start-up", f"{start_s} s")
    click.echo()
    print_table(table)


def _owners(summary: Summary) -> str:
    """``7 ReplicaSets, 1 ReplicationController``."""
    kinds = [each.flavour.kind for each in CONTROLLERS.values()]
    counts = [(summary.owners[kind], kind) for kind in kinds if kind in summary.owners]
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for count, kind in counts)


def _add_kill(table: Table, takeover: Takeover) -> None:
    slowest = max(takeover.claimed_ms.values(), default=float("nan"))
    keys = f"{len(takeover.held)} key{'s' if len(takeover.held) > 1 else ''}"
    writes = f"{takeover.pending} write{'s' if takeover.pending > 1 else ''}"
    table.add_row("killed", f"1 worker with {keys} and {writes} in flight")
    table.add_row("taken over", f"{len(takeover.claimed_ms)} of {len(takeover.held)} within {slowest:g} ms of the kill")
