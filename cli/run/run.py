"""`oarlock run`: start everything on this machine, show the fleet surviving kills, end."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from oarlock.cli.explain.explain import sentences_of
from oarlock.cli.options.options import output_option, verbose_option
from oarlock.cli.options.sandbox_options import checked_items, input_options, size_options
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cli.run.run_report import judge, report
from oarlock.cli.run.underneath import Underneath, UpEnded
from oarlock.cli.tables import show_json
from oarlock.controllers.registry import CONTROLLERS, QUEUE_OF_KIND
from oarlock.sandbox.demo.demo import Demo, DidNotConverge
from oarlock.sandbox.demo.progress import how_far
from oarlock.sandbox.demo.summary import Summary
from oarlock.sandbox.manifests.applying import NotApplied
from oarlock.sandbox.manifests.checks import Item
from oarlock.sandbox.up.state_dir import PREFIX

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NODES = 12
"""Enough for a rolling update to take several steps."""


@click.command(
    epilog="\b\nExamples:\n  oarlock run\n  oarlock run --workers 4 --no-chaos\n"
    "  oarlock run -f my-replicasets.yaml -o json"
)
@size_options(NODES)
@input_options
@click.option("--no-chaos", is_flag=True, help="Do not scale and do not kill workers.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=120.0,
    show_default=True,
    help="Seconds, once all are up.",
)
@output_option
@verbose_option
def run(
    nodes: int,
    workers: int,
    ingestors: int,
    state_dir: Path | None,
    filenames: tuple[str, ...],
    namespace: str,
    skip_unknown: bool,
    no_chaos: bool,
    timeout_s: float,
    output: str,
    verbose: int,
    **ports: int,
) -> None:
    """Start everything, apply examples/ (or -f), wait until every pod is ready. Then scale, kill a worker with SIGKILL
    in the middle of its writes, and show who took its keys over, and how fast. Then roll DaemonSets (one that may take
    nodes down, one that surges) to another revision while another worker is killed, and back. Then roll a Deployment
    to another template, give it an image that no node can pull until its progress deadline stops it, and go back. In
    the end count from the API's own watch what there was too much of, and too little.

    Exit 0 if all became ready, no pod was ever one too many, no node ever had two pods of a DaemonSet (three while it
    surges), never more nodes were down than maxUnavailable, and the Deployment kept to its limits; 1 if not.

    \b
    JSON: replicasets, replicationcontrollers, daemonsets, pods, ready_s, pods_per_s, pods_too_many,
    pods_too_many_by_set, duplicate_daemon_pods, duplicate_daemon_pods_by_set, events_counted, start_s,
    chaos: null or {scaled: {title: [from, to]}, ready_again_s, pods, and of the kill: killed_worker, killed_pid,
    writes_in_flight, keys_held, takeover_ms: {"queue:key": ms}, takeover_max_ms, taken_over},
    rollout: null or {daemonsets: {title: {nodes, max_unavailable, max_surge, most_nodes_down, revisions: {name:
    number}}}, roll_s, back_s, kill: null or as above}; a title is like "ReplicaSet shop/cart",
    deployment: null or {title, pods, max_surge, max_unavailable, most_pods, fewest_available, rolled_s, deadline_s,
    stopped_s, available_when_stopped, back_s}
    """
    items = checked_items(filenames or (str(_examples()),), namespace, skip_unknown)
    if not any(item.kind.name in QUEUE_OF_KIND for item in items):
        kinds = ", ".join(controller.flavour.kind for controller in CONTROLLERS.values())
        raise InputProblem(f"-f: no controller acts on any of these objects; add one of: {kinds}")
    quiet = output == "json"
    arguments = [
        *("--nodes", str(nodes), "--workers", str(workers), "--ingestors", str(ingestors), "--shards", "1"),
        *(f"--{name.replace('_', '-')}={port}" for name, port in ports.items()),
        *["-v"] * verbose,
    ]
    if workers < 1:
        raise InputProblem("--workers 0: the fleet needs a worker; give 1 or more")
    if workers < 2 and not no_chaos:
        raise InputProblem("--workers 1: a kill needs a second worker to take over; give 2 or more, or --no-chaos")
    tell = (lambda _: None) if quiet else click.echo
    made_here = state_dir is None
    root = Path(tempfile.mkdtemp(prefix=PREFIX)) if state_dir is None else state_dir
    began = time.monotonic()
    up = Underneath(root, arguments)
    try:
        tell(f"starting Redis, API server with {nodes} nodes, {ingestors} ingestors, {workers} workers ...")
        up.await_ready()
        start_s = round(time.monotonic() - began, 2)
        tell(f"  {start_s:5.1f} s  all are up (KUBECONFIG={up.state.kubeconfig})")
        summary = _show(up, items, time.monotonic() + timeout_s, no_chaos, quiet)
    except UpEnded as ended:
        lines = ended.lines or (f"`oarlock up` {ended}; run it by itself to see why",)
        raise (InputProblem if ended.code == 2 else NotDone)(*lines) from None
    finally:
        up.stop()
        if made_here:
            shutil.rmtree(root, ignore_errors=True)
    facts = {**summary.as_json(), "start_s": start_s}
    if quiet:
        show_json(facts)
    else:
        report(summary, start_s)
    judge(summary)


def _examples() -> Path:
    if not EXAMPLES.is_dir():
        raise InputProblem(f"{EXAMPLES} is not there (oarlock was installed without it); give objects with -f")
    return EXAMPLES


def _show(up: Underneath, items: Sequence[Item], deadline: float, no_chaos: bool, quiet: bool) -> Summary:
    demo = Demo(up.state, deadline, up.check, quiet=quiet)
    say = (lambda text: None) if quiet else click.echo
    try:
        demo.apply(items)
        if not no_chaos:
            demo.kill_a_worker(say)
        demo.roll(say, kill=not no_chaos)
        demo.roll_out(say)
        demo.count()
    except NotApplied as error:
        raise NotDone(f"the API server refused {error}") from None
    except DidNotConverge as error:
        lines = [f"{error}; raise --timeout if it was still going on, see `oarlock up` and its logs/ if it was not"]
        owners = demo.history.owners()
        for title in error.waiting[:5]:
            kind, _, key = title.partition(" ")
            seen = owners.get(title)
            counts = f"{how_far(seen)} pods available" if seen else f"{key} never seen"
            told = " ".join(sentences_of(up.state.read_redis_url(), key, QUEUE_OF_KIND[kind]))
            lines.append(f"{counts}; {told}")
        raise NotDone(*lines) from None
    finally:
        demo.close()
    return demo.summary
