"""`oarlock run`: the main job on this machine, shown working, from nothing to the end."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click
from rich.table import Table

import workers
from broker.death_signal import command_dying_with_this_process
from workers.cli.explain import sentences_of
from workers.cli.options import verbose_option
from workers.cli.problems import InputProblem, NotDone
from workers.cli.tables import print_table, show_json
from workers.cli.up import checked_items, input_options, size_options
from workers.up.applying import NotApplied
from workers.up.demo import Demo, DidNotConverge, Summary
from workers.up.state_dir import PREFIX, StateDir

EXAMPLES = Path(workers.__file__).parents[1] / "examples"
UP_LIMIT_S = 60.0


class UpEnded(Exception):
    """The `oarlock up` underneath is gone; ``lines``: what it said, ``code``: its exit code."""

    def __init__(self, lines: Sequence[str], code: int) -> None:
        super().__init__(f"ended with exit code {code}")
        self.lines, self.code = tuple(lines), code


@click.command(
    epilog="\b\nExamples:\n  oarlock run\n  oarlock run --workers 4 --no-chaos\n"
    "  oarlock run -f my-replicasets.yaml -o json"
)
@size_options
@input_options
@click.option("--no-chaos", is_flag=True, help="Do not scale and do not kill a worker.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1),
    default=120.0,
    show_default=True,
    help="Seconds, once all are up.",
)
@click.option(
    "--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to end."
)
@verbose_option
def run(
    nodes: int,
    workers: int,
    ingestors: int,
    api_port: int,
    redis_port: int,
    state_dir: Path | None,
    filenames: tuple[str, ...],
    namespace: str,
    skip_unknown: bool,
    no_chaos: bool,
    timeout_s: float,
    output: str,
    verbose: int,
) -> None:
    """Start everything, apply examples/ (or -f), wait until every pod is ready; then scale, kill a worker with SIGKILL
    in the middle of its writes, and show who took its keys over, how fast, and with how many pods too many.

    Exit 0 if all became ready and no pod was ever one too many; 1 if not.

    \b
    JSON: replicasets, pods, ready_s, pods_per_s, pods_too_many, pods_too_many_by_set, events_counted, start_s,
    chaos: null or {scaled: {key: [from, to]}, killed_worker, killed_pid, writes_in_flight, keys_held,
    takeover_ms: {"queue:key": ms}, takeover_max_ms, taken_over, ready_again_s, pods}
    """
    items = checked_items(filenames or (str(_examples()),), namespace, skip_unknown)
    if not any(item.kind.name == "ReplicaSet" for item in items):
        raise InputProblem("-f: none of these objects is a ReplicaSet: there is nothing to be done; add one")
    quiet = output == "json"
    arguments = [
        *("--nodes", str(nodes), "--workers", str(workers), "--ingestors", str(ingestors)),
        *("--api-port", str(api_port), "--redis-port", str(redis_port), *["-v"] * verbose),
    ]
    if workers < 1:
        raise InputProblem("--workers 0: nobody would do the work; give 1 or more")
    if workers < 2 and not no_chaos:
        raise InputProblem("--workers 1: a kill needs a second worker to take over; give 2 or more, or --no-chaos")
    made_here = state_dir is None
    root = Path(tempfile.mkdtemp(prefix=PREFIX)) if state_dir is None else state_dir
    began = time.monotonic()
    up = Underneath(root, arguments)
    try:
        if not quiet:
            click.echo(f"starting Redis, API server with {nodes} nodes, {ingestors} ingestors, {workers} workers ...")
        up.await_ready()
        start_s = round(time.monotonic() - began, 2)
        if not quiet:
            click.echo(f"  {start_s:5.1f} s  all are up (KUBECONFIG={up.state.kubeconfig})")
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
        _print(summary, start_s)
    _judge(summary)


def _examples() -> Path:
    if not EXAMPLES.is_dir():
        raise InputProblem(f"{EXAMPLES} is not there (oarlock was installed without it); give objects with -f")
    return EXAMPLES


def _show(up: Underneath, items: Sequence[object], deadline: float, no_chaos: bool, quiet: bool) -> Summary:
    demo = Demo(up.state, deadline, up.check, quiet=quiet)
    say = (lambda text: None) if quiet else click.echo
    try:
        demo.apply(items)  # type: ignore[arg-type]
        if not no_chaos:
            demo.kill_a_worker(say)
        demo.count()
    except NotApplied as error:
        raise NotDone(f"the API server refused {error}") from None
    except DidNotConverge as error:
        lines = [f"{error}; raise --timeout if it was still going on, see `oarlock up` and its logs/ if it was not"]
        for key in error.waiting[:5]:
            seen = demo.history.sets().get(key)
            counts = f"{seen.available} of {seen.replicas} pods available" if seen else "never seen"
            lines.append(f"{key}: {counts}; {' '.join(sentences_of(up.state.read_redis_url(), key))}")
        raise NotDone(*lines) from None
    finally:
        demo.close()
    return demo.summary


def _judge(summary: Summary) -> None:
    """Raises NotDone where the promise was not kept, or could not be looked at."""
    if not summary.counted:
        raise NotDone("a part of the watch history was lost: pods too many could not be counted; run it again")
    if summary.too_many:
        named = ", ".join(f"{key} {count}" for key, count in summary.too_many.items())
        raise NotDone(f"there were pods too many: {named}; this must not happen, please report it")
    if summary.scaled and summary.takeover is None:
        raise NotDone("no worker was caught with writes in flight, so nothing was shown; run it again")
    if summary.takeover is not None and not summary.takeover.complete:
        raise NotDone("not all keys of the killed worker were claimed again within 20 s")


def _print(summary: Summary, start_s: float) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    rate = f"{summary.pods / summary.ready_s:.0f} pods a second" if summary.ready_s else ""
    table.add_row("ready", f"{summary.pods} pods of {summary.replicasets} ReplicaSets in {summary.ready_s} s ({rate})")
    takeover = summary.takeover
    if takeover is not None:
        slowest = max(takeover.claimed_ms.values(), default=float("nan"))
        keys = f"{len(takeover.held)} key{'s' if len(takeover.held) > 1 else ''}"
        table.add_row("killed", f"1 worker with {keys} and {takeover.pending} writes in flight")
        table.add_row(
            "taken over", f"{len(takeover.claimed_ms)} of {len(takeover.held)} within {slowest:g} ms of the kill"
        )
        table.add_row("ready again", f"{summary.pods_after} pods in {summary.ready_again_s} s")
    told = str(sum(summary.too_many.values())) if summary.counted else "not counted"
    table.add_row("pods too many", f"{told} (from {summary.events} events of the API's own watch)")
    table.add_row("start-up", f"{start_s} s")
    click.echo()
    print_table(table)


class Underneath:
    """The `oarlock up` that `run` shows: a child that stops in good order when we go, however we go."""

    def __init__(self, root: Path, arguments: Sequence[str]) -> None:
        self.state = StateDir(root.absolute())
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in stop
        command = [sys.executable, "-m", "workers.cli", "up", "--state-dir", str(root), *arguments]
        signal.signal(signal.SIGTERM, _interrupt)
        self._process = subprocess.Popen(
            command_dying_with_this_process(command, signal.SIGTERM),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
        )

    def await_ready(self) -> None:
        """Raises UpEnded; NotDone after a minute."""
        deadline = time.monotonic() + UP_LIMIT_S
        while self.state.owner_pid() != self._process.pid or self.state.read_up().get("state") != "ready":
            self.check()
            if time.monotonic() > deadline:
                raise NotDone(f"not everything was up within {UP_LIMIT_S:.0f} s; try `oarlock up -v`")
            time.sleep(0.01)

    def check(self) -> None:
        """Raises UpEnded once it has ended."""
        code = self._process.poll()
        if code is not None:
            self._said.seek(0)
            lines = self._said.read().decode(errors="replace").splitlines()
            told = [line.removeprefix("oarlock: ") for line in lines if line.startswith("oarlock: ")]
            raise UpEnded(told or lines[-1:], code)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
