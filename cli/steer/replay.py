"""`oarlock replay`: queue keys again that are parked or keep failing, as if nothing had happened."""

from __future__ import annotations

import click

from oarlock.broker.pauses import note
from oarlock.cli.look.keys import AskedKey
from oarlock.cli.look.view import View, Views, Where, controller_option, looking, view_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.problems import InputProblem
from oarlock.cli.steer.many import ask, count_of, queue_all, tell_picked
from oarlock.cli.steer.scopes import broker_of, by_option
from oarlock.cli.steer.selection import Picked, Selection, selecting


@click.command(
    epilog="\b\nExamples:\n  oarlock replay shop/cart\n  oarlock replay --all --preview\n"
    "  oarlock replay -n shop --yes\n  oarlock replay -l app=web -c replicaset"
)
@click.argument("keys", nargs=-1, metavar="[KEY...]")
@controller_option("Whose keys.")
@selecting
@click.option("--all", "-A", "every", is_flag=True, help="All that are parked or failing.")
@click.option("--preview", is_flag=True, help="Only say which keys.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask, however many there are.")
@namespace_option
@by_option
@view_options
def replay(
    keys: tuple[str, ...],
    controller: str | None,
    labels: str,
    kubeconfig: str | None,
    every: bool,
    preview: bool,
    yes: bool,
    namespace: str | None,
    by: str,
    where: Where,
    output: str,
) -> None:
    """Queue keys again that are parked, by `oarlock park` or because they crash their workers, or that keep failing:
    each KEY (namespace/name, or rs/namespace/name), or those that the options pick. Their parking ends, and their
    failures and crashes are forgotten, so the back-off begins anew. They leave RQ's failed-job registry within seconds;
    a key that fails for five turns again comes back into it.

    A key that is paused (`oarlock pause`) stays so until `oarlock resume`.

    \b
    JSON: {selected, queued (the others are in work, or wait already), queues: {QUEUE: number of keys}}; with --preview
    also keys: {QUEUE: [key, ...]}
    """
    picks = Selection(namespace, controller, labels, failing=True, parked=True, by_hand=True, kubeconfig=kubeconfig)
    if keys and (labels or every):
        raise InputProblem(f"{'--selector' if labels else '--all'}: with KEY nothing is picked; leave one of them out")
    if not (keys or labels or every or namespace or controller):
        raise InputProblem("replay what? name KEYs, or pick them with -l, -n, -c or --all")
    asked = [AskedKey.parse(key, controller, namespace) for key in keys]
    with looking(where) as views:
        if keys:
            picks = Selection(failing=True, parked=True, by_hand=True)
        picked = picks.pick(views, where.state_dir)
        if keys:
            picked = _only(views, picked, [task for each in asked for task in each.tasks(views)])
        added = 0
        if picked and not preview:
            ask("queued", picked, yes)
            added = queue_all(picked, lambda view, queue, page: _replay(view, queue, page, note(by, "")))
            for view in {each.view.shard: each.view for each in picked}.values():
                mine = [each for each in picked if each.view is view]
                one = len(mine) == 1 and len(mine[0].keys) == 1
                what = f"{mine[0].queue}:{mine[0].keys[0]}" if one else f"{count_of(mine)} keys, {picks}"
                broker_of(view).steer("note", f"replay {what}", note(by, ""))
        tell_picked(picked, added, preview, output)


def _only(views: Views, picked: list[Picked], tasks: list[tuple[str, str]]) -> list[Picked]:
    """Of what is picked, these keys. Raises InputProblem for one that is not there."""
    known = {(each.view.shard, each.queue): set(each.keys) for each in picked}
    found = []
    for queue, key in tasks:
        views_of = [view for view in views.having(key) if key in known.get((view.shard, queue), ())]
        if not views_of:
            raise InputProblem(
                f"{key} of {queue} is neither parked nor failing; `oarlock requeue {key}` queues any key,"
                f" `oarlock explain {key}` says how it is"
            )
        found += [Picked(view, queue, [key]) for view in views_of]
    return found


def _replay(view: View, queue: str, page: list[str], told: str) -> int:
    """It is killed between two calls: then some keys are queued and not forgiven, and are replayed once more."""
    broker = broker_of(view)
    by_hand = {pause.parked for pause in view.inspector.pauses()}
    for key in page:
        if f"{queue}:{key}" in by_hand:
            broker.steer("resume", f"key {queue}:{key}", told)
    added = broker.add(queue, page, unpark=True)
    for key in page:
        broker.forget(queue, key)
    return added
