"""`oarlock shadow`: what a fleet that runs dry has found beside upstream's controllers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from oarlock.broker.keys import Keys
from oarlock.broker.shadow_store import Difference, ShadowStore
from oarlock.cli.look.view import View, Where, looking, verbose_option
from oarlock.cli.options.options import check_kubeconfig, output_option, state_dir_option, together
from oarlock.cli.options.redis_options import redis_option
from oarlock.cli.options.setting_options import given
from oarlock.cli.shadow import rows
from oarlock.cli.shadow.upstream_events import told_of_refusals
from oarlock.cli.steer.scopes import Span
from oarlock.cli.tables import show, show_json, stamp
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process.log_line import printable
from oarlock.workers.turn.shadow.course import Course
from oarlock.workers.turn.shadow.judge import UNEXPLAINED
from oarlock.workers.turn.shadow.recorder import decoded

DIFFERENCES_SHOWN = 20
OWNER_COLUMNS = {
    "owner": "OWNER",
    "windows": "WINDOWS",
    "same": "SAME",
    "explained": "EXPLAINED",
    "unexplained": "UNEXPLAINED",
    "pending_ms": "PENDING",
    "why": "WHY",
}
TOTAL_COLUMNS = {
    "controller": "CONTROLLER",
    "windows": "WINDOWS",
    "same": "SAME",
    "explained": "EXPLAINED",
    "unexplained": "UNEXPLAINED",
}


@click.group(epilog="\b\nExamples:\n  oarlock shadow report --redis redis://metrics:secret@redis:6379/0")
def shadow() -> None:
    """A fleet that runs dry beside kube-controller-manager compares what it decides with what that does
    (docs/shadow.md).
    """


def _name_fleet(context: click.Context, _: click.Parameter, fleet: str) -> None:
    given(context).update(dry_run=True, fleet_id=fleet)


which_options = together(
    redis_option,
    state_dir_option,
    click.option(
        "--fleet-id",
        default="shadow",
        show_default=True,
        expose_value=False,
        is_eager=True,
        callback=_name_fleet,
        help="The name that its processes were given.",
    ),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that is kept of the comparison, at a moment of Redis's clock."""

    now_ms: int
    courses: list[tuple[str, str, Course]]
    windows: dict[tuple[str, str], int]
    differences: list[Difference]


@shadow.command(
    epilog="\b\nExamples:\n  oarlock shadow report --redis redis://metrics:secret@redis:6379/0\n"
    "  oarlock shadow report --since 24h --all\n  oarlock shadow report -o json | jq .unexplained"
)
@click.option("--since", "since_ms", type=Span(), metavar="SPAN", help="Only what was found since then, such as 24h.")
@click.option("--all", "everything", is_flag=True, help="Every owner, and every difference that is explained.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    envvar="OARLOCK_KUBECONFIG",
    help="Ask upstream's events there whether creates that stand were refused.",
)
@which_options
@output_option
@verbose_option
def report(
    since_ms: int | None, everything: bool, kubeconfig: str | None, output: str, redis_url: str | None, state_dir: Any
) -> int:
    """Compare what was decided with what upstream did, owner by owner. Exit code 1 if something is not explained.

    A window opens when a write is decided, or when upstream acts, and closes when nothing is to be written any more.
    It is the same if upstream did what was decided, explained if each difference has a reason of docs/shadow.md.

    \b
    JSON: {now_ms, unexplained, controllers: [{controller, windows, same, explained, unexplained}],
    owners: [{owner, windows, same, explained, unexplained, pending_ms, wants, why, lines}],
    differences: [{at_ms, queue, key, reason, text}]}
    """
    with looking(Where(redis_url, state_dir)) as views:
        found = _found(next(iter(views)))
    refused = _refused(found, kubeconfig)
    after_ms = 0 if since_ms is None else found.now_ms - since_ms
    owners = [
        rows.owner_row(queue, key, course, found.now_ms, told_refused=(queue, key) in refused)
        for queue, key, course in found.courses
    ]
    owners = [row for row in owners if row.last_ms >= after_ms or row.wants]
    shown = sorted(owners) if everything else rows.worth_telling(owners)
    differences = [each for each in found.differences if each.at_ms >= after_ms]
    bad = [each for each in differences if each.reason == UNEXPLAINED]
    stands = sum(row.unexplained - row.windows.get(UNEXPLAINED, 0) for row in owners)
    count = len(bad) + stands if since_ms is not None else stands + _closed_badly(found)
    told = differences if everything else bad
    if output == "json":
        show_json(
            {
                "now_ms": found.now_ms,
                "unexplained": count,
                "controllers": rows.totals(found.windows),
                "owners": [row.as_row() for row in shown],
                "differences": [each._asdict() for each in told],
            }
        )
        return 1 if count else 0
    show(rows.totals(found.windows), TOTAL_COLUMNS, output, empty="no window has closed yet")
    if shown:
        click.echo()
        show([row.as_row() for row in shown], OWNER_COLUMNS, output)
    _say(shown, told)
    click.echo(f"\n{count} unexplained" if count else "\nnothing is unexplained")
    return 1 if count else 0


def _closed_badly(found: Found) -> int:
    return sum(count for (_, verdict), count in found.windows.items() if verdict == UNEXPLAINED)


def _found(view: View) -> Found:
    store = ShadowStore(view.client, Keys(view.seen.epoch, view.shard))
    courses = [
        (queue, key, course)
        for queue in CONTROLLERS
        for key, blob in store.all_courses(queue)
        if (course := decoded(blob)) is not None
    ]
    seconds, micros = view.client.time()
    return Found(int(seconds) * 1000 + int(micros) // 1000, courses, store.windows(), store.differences())


def _refused(found: Found, kubeconfig: str | None) -> set[tuple[str, str]]:
    asked = {
        course.seen.uid: (queue, key)
        for queue, key, course in found.courses
        if kubeconfig and rows.asks_for_events(course, found.now_ms)
    }
    if not asked:
        return set()
    refused = told_of_refusals(check_kubeconfig(kubeconfig or ""), {key.partition("/")[0] for _, key in asked.values()})
    return {owner for uid, owner in asked.items() if uid in refused}


def _say(shown: list[rows.OwnerRow], told: list[Difference]) -> None:
    """In sentences: what is not explained, and what upstream did otherwise."""
    lines = [f"{row.queue} {row.key}: {text}" for row in shown if row.unexplained for text in row.lines]
    lines += [f"{row.queue} {row.key}: {row.why}: {row.wants}" for row in shown if row.wants and not row.unexplained]
    known = set(lines)
    for each in told[:DIFFERENCES_SHOWN]:
        text = f"{each.queue} {each.key}: {each.text}"
        if text not in known:
            lines.append(f"{stamp(each.at_ms)} {text} ({each.reason})")
    if lines:
        click.echo("\n" + "\n".join(printable(line) for line in lines))
