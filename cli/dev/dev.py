"""`oarlock dev`: a cluster on this machine with a user's own controllers, which are loaded anew on every change."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import click

from oarlock.broker.connection.client import connect
from oarlock.cli import logs
from oarlock.cli.dev import figures
from oarlock.cli.dev.code_watch import Check, Checked, CodeWatch
from oarlock.cli.dev.happenings import EVENTS, Happenings
from oarlock.cli.dev.operator_child import LogTail, OperatorChild, environment_of
from oarlock.cli.options.options import verbose_option
from oarlock.cli.options.sandbox_options import checked_items, input_options
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cli.tables import Row, show
from oarlock.cluster.access import config
from oarlock.cluster.client import Client
from oarlock.cluster.resources import Resource
from oarlock.sandbox.apiserver.kinds.kind import Kind
from oarlock.sandbox.manifests.applying import NotApplied, apply
from oarlock.sandbox.manifests.checks import Item
from oarlock.sandbox.manifests.defining import define
from oarlock.sandbox.up.start import NotStarted, Options, Up
from oarlock.sandbox.up.state_dir import StateDir, StateDirUnusable
from oarlock.sandbox.up.tree import ApiServerEnded, Stopped
from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.loading import fleet_of
from oarlock.workers.process.io_loop import IoLoop

TICK_S = 0.1
CLOSE_S = 2.0
DEFINE_S = 20.0
FIGURES_EVERY_S = 1.0
_PORT = click.IntRange(0, 65_535)


@click.command(
    epilog="\b\nExamples:\n  oarlock dev site.py\n  oarlock dev site.py -f site.yaml --nodes 5\n"
    "  export KUBECONFIG=...; kubectl get websites -w     (in another terminal)"
)
@click.argument("what", metavar="FILE|MODULE")
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Workers of its controllers.")
@click.option("--nodes", type=click.IntRange(1, 5_000), default=3, show_default=True, help="Simulated nodes.")
@click.option("--api-port", type=_PORT, default=0, help="Port of the API server; 0: any free one.")
@click.option("--redis-port", type=_PORT, default=0, help="Port of the Redis; 0: any free one.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    envvar="OARLOCK_STATE_DIR",
    help="Keep kubeconfig, audit.log and logs/ here. Default: a temporary one.",
)
@input_options
@verbose_option
def dev(
    what: str,
    workers: int,
    nodes: int,
    api_port: int,
    redis_port: int,
    state_dir: Path | None,
    filenames: tuple[str, ...],
    namespace: str,
    skip_unknown: bool,
    verbose: int,
) -> None:
    """Try the controllers of FILE (site.py), or of the dotted MODULE: start an API server with simulated nodes and the
    built-in controllers, define the kinds of the file's types, apply -f, run the controllers, and tell what happens.

    When the file, or one beside it that it imports, changes, it is loaded anew and every object is looked at again. A
    file that cannot be used is told, and the last one that could runs on. Ctrl-C ends everything and leaves nothing.
    """
    checked = Check(what).wait()
    try:
        fleet = os.environ.get("OARLOCK_FLEET_ID") or fleet_of(what)
    except BadDefinition as error:
        raise InputProblem(checked.problem or str(error)) from None
    if checked.problem:
        raise InputProblem(checked.problem)
    items = checked_items(filenames, namespace, skip_unknown, _defined(checked.facts["kinds"]))
    logs.set_up(verbose, least=logging.INFO if verbose else logging.ERROR)
    try:
        state = StateDir.take(state_dir)
    except StateDirUnusable as error:
        raise InputProblem(str(error)) from None
    up = Up(state, Options(nodes=nodes, workers=1, ingestors=1, api_port=api_port, redis_port=redis_port))
    session: Session | None = None
    try:
        up.start([])
        _bring(state, checked, items)
        session = Session(what, fleet, workers, up, state, checked)
        click.echo(_greeting(state, what, fleet, checked))
        session.run()
    except Stopped:
        click.echo("stopping ...")
    except (NotStarted, NotApplied) as error:
        raise InputProblem(str(error)) from None
    except ApiServerEnded as error:
        raise NotDone(f"the API server ended ({error}), and the cluster's state with it; all is stopped") from None
    finally:
        if session is not None:
            session.close()
        up.stop()


class Session:
    """The operator's process, and what is told of it."""

    def __init__(self, what: str, fleet: str, workers: int, up: Up, state: StateDir, checked: Checked) -> None:
        self._what, self._fleet, self._up, self._facts = what, fleet, up, checked.facts
        self._watch = CodeWatch(what, checked.files)
        self._check: Check | None = None
        environment = {**environment_of(up.redis_url, state.kubeconfig), "OARLOCK_FLEET_ID": fleet}
        self._child = OperatorChild(what, workers, environment, state.logs, up.yields)
        self._log = LogTail(self._child.log)
        self._redis = connect(up.redis_url, shard=fleet)
        self._io = IoLoop()
        self._client = Client(config.load(state.kubeconfig), role="dev")
        self._happenings = Happenings(frozenset(each["kind"] for each in checked.facts["kinds"] if each["own"]))
        self._followed: dict[Resource, Future[None]] = {}
        self._rows: list[Row] = []
        self._figures_at_s = 0.0

    def run(self) -> None:
        """Until somebody stops it. Raises Stopped, ApiServerEnded."""
        self._follow(self._facts["kinds"])
        self._up.tree.add([self._child])
        self._up.tree.watch(self._tick, tick_s=TICK_S)

    def close(self) -> None:
        if self._check is not None:
            self._check.end()
        for following in self._followed.values():
            following.cancel()
        self._io.run(self._client.close(), CLOSE_S)
        self._io.close()
        self._redis.close()
        self._child.close()

    def _follow(self, kinds: Iterable[Mapping[str, Any]]) -> None:
        wanted = {Resource(each["apiVersion"], each["plural"], each["kind"], each["namespaced"]) for each in kinds}
        for resource in sorted({*wanted, EVENTS} - self._followed.keys(), key=str):
            self._followed[resource] = self._io.submit(self._happenings.follow(self._client, resource))

    def _tick(self) -> bool:
        while not self._happenings.told.empty():
            _say(self._happenings.told.get())
        for line in self._log.lines():
            _say(line)
        self._look_at_files()
        if time.monotonic() >= self._figures_at_s:
            self._figures_at_s = time.monotonic() + FIGURES_EVERY_S
            self._show_figures()
        return False

    def _look_at_files(self) -> None:
        if self._watch.changed():
            if self._check is not None:
                self._check.end()
            self._check = Check(self._what)
        if self._check is None or not self._check.done:
            return
        checked, self._check = self._check.wait(), None
        if problem := checked.problem or self._refused(checked):
            _say(f"! {problem}")
            _say("! not loaded: what ran before runs on")
            return
        self._facts = checked.facts
        self._watch.follow(checked.files)
        self._happenings.own = frozenset(each["kind"] for each in checked.facts["kinds"] if each["own"])
        self._follow(checked.facts["kinds"])
        self._log.forget()
        self._child.reload()
        _say(f"* {self._what} has changed: loaded anew")

    def _refused(self, checked: Checked) -> str:
        """Define its kinds, before what runs is ended. Why the API server takes one of them not; empty if it does."""
        try:
            self._io.run(define(self._client, checked.facts["crds"]), DEFINE_S)
        except NotApplied as error:
            return f"the API server refused {error}"
        except TimeoutError:
            return f"the API server has not defined its kinds within {DEFINE_S:g} s"
        return ""

    def _show_figures(self) -> None:
        rows = figures.rows(self._redis, self._fleet, self._child.metrics_url, self._facts["controllers"])
        if rows and rows != self._rows:
            self._rows = rows
            show(rows, figures.COLUMNS, "table")


def _bring(state: StateDir, checked: Checked, items: list[Item]) -> None:
    """Define the kinds, then apply the objects. Raises NotApplied."""

    async def bring() -> None:
        cluster = config.load(state.kubeconfig)
        async with Client(cluster, role="dev") as client:
            await define(client, checked.facts["crds"])
        await apply(cluster, items)

    asyncio.run(bring())


def _defined(kinds: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Kind]:
    found = {}
    for each in kinds:
        group, _, version = str(each["apiVersion"]).rpartition("/")
        found[each["apiVersion"], each["kind"]] = Kind(
            each["kind"], group=group, version=version, plural=each["plural"], namespaced=each["namespaced"]
        )
    return found


def _greeting(state: StateDir, what: str, fleet: str, checked: Checked) -> str:
    names = ", ".join(each["name"] for each in checked.facts["controllers"])
    return "\n".join(
        [
            f"{what} runs: {names}.",
            "",
            f"  export KUBECONFIG={state.kubeconfig}",
            f"  oarlock explain --operator {what} NAMESPACE/NAME",
            f"  logs        {state.logs / 'operator.log'}",
            "",
            "+ new  ~ changed  - gone  ! trouble  * loaded anew; Ctrl-C ends everything.",
        ]
    )


def _say(line: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {line}")
