"""``kubectl-oarlock``: the commands that look into a fleet and steer it, with kubectl's conventions.

kubectl starts the program of this name for `kubectl oarlock ...` and hands over all that follows. A command is the one
of `oarlock` with three changes: it takes TYPE/NAME or TYPE NAME, a name without --namespace is in the namespace of the
context, and the fleet is the one whose Redis is named, or of the `oarlock up` that the kubeconfig in effect belongs to.
A fleet of another cluster is never looked into by mistake.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from oarlock.cli import COMMANDS
from oarlock.cli.group import LazyGroup
from oarlock.cli.kubectl.names import keys_of, types_beginning
from oarlock.cli.options.which_up import up_of, up_of_environment
from oarlock.cli.problems import InputProblem
from oarlock.cluster.access import config
from oarlock.cluster.access.credentials import ConfigError

PROGRAM = "kubectl oarlock"
NAMES = ("key", "keys")
"""What the commands call the argument that names objects."""
_KEY_HELP = re.compile(r"KEY \(namespace/name[^)]*\)")
EXAMPLES = {
    "explain": ("deploy/web -n shop", "pod web-5d4f9-x2x7k", "node/node-3 -o json"),
    "history": ("deploy/web -n shop", "rs cart -w"),
    "top": ("", "--once -o json"),
    "queue": ("", "--keys -n shop"),
    "locks": ("", "-n shop -o json"),
    "expectations": ("", "rs/cart -n shop"),
    "epoch": ("", "-o json"),
    "requeue": ("deploy/web -n shop", "rs cart web --force", "-l app=web -n shop --preview"),
    "park": ("rs/cart -n shop --for 1h --reason debugging",),
    "replay": ("rs/cart -n shop", "--all --preview"),
    "drain": ("", "host-1-4f9a2c01 --wait"),
    "undrain": ("host-1-4f9a2c01",),
    "pause": ("rs/cart -n shop --reason debugging", "-n shop", "--all"),
    "resume": ("rs/cart -n shop", "--all"),
    "rate": ("replicaset 5 --reason 'the API server is slow'", "-n shop 10"),
    "weight": ("-n shop 4", "deployment 2"),
    "audit": ("", "--last 5 -o json"),
}
"""The commands of the plugin, each with its examples."""

HELP = """Ask a fleet of oarlock workload controllers why nothing has happened, what is going on, and make it stop.

\b
  kubectl oarlock explain deploy/web -n shop
  kubectl oarlock history rs cart -w
  kubectl oarlock top

The fleet's Redis is named by --redis or OARLOCK_REDIS_URL. Of a fleet in the cluster, first:

\b
  kubectl port-forward -n oarlock svc/oarlock-redis 6379 &
  export OARLOCK_REDIS_URL=redis://metrics:PASSWORD@127.0.0.1:6379/0
"""
NO_REDIS = (
    "which Redis is the fleet's? Give --redis URL or OARLOCK_REDIS_URL; of a fleet in the cluster, first:"
    " kubectl port-forward -n oarlock svc/oarlock-redis 6379"
)


_CLUSTER = (
    click.Option(["--kubeconfig"], metavar="FILE", help="Whose context counts. Default: KUBECONFIG, ~/.kube/config."),
    click.Option(["--context"], help="The context whose namespace names are in. Default: the current one."),
)


class Plugin(LazyGroup):
    """The group of the plugin's commands."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        return None if command is None else as_plugin(command, EXAMPLES[cmd_name])


def as_plugin(command: click.Command, examples: Sequence[str]) -> click.Command:
    """The same command with kubectl's conventions."""
    made = copy.copy(command)
    names = next((each for each in command.params if each.name in NAMES), None)
    asks_cluster = any(each.name == "kubeconfig" for each in command.params)
    made.params = [_of_types(each) if each is names else each for each in command.params if each.name != "kubeconfig"]
    made.params += _CLUSTER
    made.epilog = "\b\nExamples:\n" + "\n".join(f"  {PROGRAM} {command.name} {each}".rstrip() for each in examples)
    made.help = _KEY_HELP.sub("TYPE/NAME", command.help or "")
    as_before = command.callback
    assert as_before is not None

    def call(kubeconfig: str | None, context: str | None, **given: Any) -> Any:
        if names is not None:
            name, words = str(names.name), given[str(names.name)]
            keys = keys_of(words, given["namespace"] or _namespace(kubeconfig, context)) if words else []
            given["namespace"] = None if keys else given["namespace"]
            given[name] = tuple(keys) if names.nargs == -1 else _one(keys)
        if asks_cluster:
            given["kubeconfig"] = kubeconfig
        if given["redis_url"] is None and given["state_dir"] is None:
            given["state_dir"] = _directory_of_up(kubeconfig)
        return as_before(**given)

    made.callback = call
    return made


def _of_types(argument: click.Parameter) -> click.Parameter:
    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(each) for each in types_beginning(begun)]

    return click.Argument(
        [str(argument.name)], nargs=-1, required=argument.required, metavar="TYPE/NAME", shell_complete=complete
    )


def _one(keys: Sequence[str]) -> str | None:
    if len(keys) > 1:
        raise InputProblem(f"{' and '.join(keys)}: one at a time; call the command once for each")
    return keys[0] if keys else None


def _directory_of_up(kubeconfig: str | None) -> Path:
    """Of the `oarlock up` whose kubeconfig is in effect. Raises InputProblem."""
    state = up_of([kubeconfig]) if kubeconfig else up_of_environment()
    if state is None:
        raise InputProblem(NO_REDIS)
    return state.root


def _namespace(kubeconfig: str | None, context: str | None) -> str:
    """Of the context, as kubectl takes it. Raises InputProblem."""
    try:
        return config.load(kubeconfig or None, context or "").namespace
    except ConfigError as error:
        raise InputProblem(str(error)) from None


plugin = Plugin(PROGRAM, {name: COMMANDS[name] for name in EXAMPLES}, HELP)


def main() -> None:
    """The console script ``kubectl-oarlock``."""
    plugin(prog_name=PROGRAM)


def complete() -> None:
    """The console script ``kubectl_complete-oarlock``: kubectl 1.26 and later ask it for what may come next."""
    *before, begun = sys.argv[1:] or [""]
    found = ShellComplete(plugin, {}, PROGRAM, "").get_completions(before, begun)
    for each in found:
        click.echo(f"{each.value}\t{each.help}" if each.help else each.value)
    click.echo(":4")  # no file names
