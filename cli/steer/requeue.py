"""`oarlock requeue`: queue keys again, now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from oarlock.broker.pauses import note
from oarlock.cli.look.keys import AskedKey
from oarlock.cli.look.view import Views, Where, controller_option, looking, view_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.problems import InputProblem
from oarlock.cli.steer.many import ask, count_of, queue_all, tell_picked
from oarlock.cli.steer.scopes import broker_of, by_option
from oarlock.cli.steer.selection import Selection, selecting
from oarlock.cli.tables import show_json
from oarlock.controllers.registry import resource_of


@click.command(
    epilog="\b\nExamples:\n  oarlock requeue shop/cart\n  oarlock requeue web -n default --force\n"
    "  oarlock requeue -c daemonset-node-updates node-3\n  oarlock requeue -l app=web,tier!=cache -n shop --preview\n"
    "  oarlock requeue -c deployment --failing\n  oarlock requeue --all --yes"
)
@click.argument("keys", nargs=-1, metavar="[KEY...]")
@controller_option("Whose queue. With KEY, the default: of the kind that has an object of that name in the cache.")
@selecting
@click.option("--failing", is_flag=True, help="Keys whose last turn failed.")
@click.option("--parked", is_flag=True, help="Keys that are parked because they crash their workers.")
@click.option("--all", "-A", "every", is_flag=True, help="Every object in the cache, of every namespace.")
@click.option("--preview", is_flag=True, help="Only say which keys.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask, however many there are.")
@click.option("--force", is_flag=True, help="Also queue a KEY whose object is not in the cache.")
@namespace_option
@by_option
@view_options
def requeue(
    keys: tuple[str, ...],
    controller: str | None,
    labels: str,
    kubeconfig: str | None,
    failing: bool,
    parked: bool,
    every: bool,
    preview: bool,
    yes: bool,
    force: bool,
    namespace: str | None,
    by: str,
    where: Where,
    output: str,
) -> None:
    """Queue each KEY (namespace/name, or rs/namespace/name; of a node its name) again, now. Without KEY: all that the
    options pick, where each narrows: of a namespace, of a controller, with labels (in all namespaces without -n),
    failing or parked. A key in work is queued once its turn ends. Of a kind with several controllers it is queued for
    each.

    Harmless at any time: a turn changes nothing if nothing differs. More than 20 keys are asked for first. Many are
    queued no faster than the workers take them, so that no event waits long behind them.

    \b
    JSON with KEY: [{queue, key, added, state}]; else {selected, queued (the others are in work, or wait already),
    queues: {QUEUE: number of keys}}; with --preview also keys: {QUEUE: [key, ...]}
    """
    selection = Selection(namespace, controller, labels, failing, parked, kubeconfig=kubeconfig)
    picks = {"--selector": labels, "--failing": failing, "--parked": parked, "--all": every}
    given = " and ".join(word for word, value in picks.items() if value)
    if keys:
        if given:
            raise InputProblem(f"{given}: with KEY nothing is picked; leave one of them out")
        asked = [AskedKey.parse(key, controller, namespace) for key in keys]
        with looking(where) as views:
            _tell_each(_requeue_each(views, asked, force, by, preview), preview, output)
        return
    if not (given or namespace or controller):
        raise InputProblem("requeue what? name KEYs, or pick them with -l, -n, -c, --failing, --parked or --all")
    with looking(where) as views:
        picked = selection.pick(views, where.state_dir)
        added = 0
        if picked and not preview:
            ask("queued", picked, yes)
            added = queue_all(picked, lambda view, queue, page: broker_of(view).add(queue, page, unpark=True))
            for view in {each.view.shard: each.view for each in picked}.values():
                broker_of(view).steer("note", f"requeue {count_of(picked)} keys, {selection}", note(by, ""))
        tell_picked(picked, added, preview, output)


@dataclass(frozen=True, slots=True)
class _Requeued:
    """One key. ``line``: how a line about it begins."""

    queue: str
    key: str
    added: bool
    state: str
    line: str


def _requeue_each(views: Views, asked: Sequence[AskedKey], force: bool, by: str, preview: bool) -> list[_Requeued]:
    wanted = [task for each in asked for task in each.tasks(views)]
    if not force:
        missing = [task for task in wanted if _is_missing(views, *task)]
        for queue in dict.fromkeys(queue for queue, _ in missing):
            resource, named = resource_of(queue), ", ".join(key for each, key in missing if each == queue)
            raise InputProblem(f"{named}: not among the cached {resource}; see `oarlock get {resource}`, or --force")
    found = []
    for queue, key in wanted:
        for view in views.having(key):
            broker, added = broker_of(view), 0
            if not preview:
                added = broker.add(queue, [key], unpark=True)
                broker.steer("note", f"requeue {queue}:{key}", note(by, ""))
            of = "" if "/" in key else views.of_shard(view)
            whose = f" of {queue}" if len(wanted) > len(asked) else ""
            state = view.inspector.key(queue, key).state
            found.append(_Requeued(queue, key, added > 0, state, f"{of}{key}{whose}"))
    return found


def _tell_each(requeued: Sequence[_Requeued], preview: bool, output: str) -> None:
    if output == "json":
        show_json([{"queue": e.queue, "key": e.key, "added": e.added, "state": e.state} for e in requeued])
        return
    for each in requeued:
        now = "would be queued" if preview else "queued" if each.added else ""
        click.echo(f"{each.line}: {now or f'nothing to add, it is {each.state} already'}")


def _is_missing(views: Views, queue: str, key: str) -> bool:
    return views.of(key).inspector.object(resource_of(queue), key) is None
