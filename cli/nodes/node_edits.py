"""The commands of `oarlock nodes` that change existing nodes, with one write for each node."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import click

from oarlock.cli.nodes.node_api import Nodes, Written, refuse, write_each
from oarlock.cli.nodes.node_options import connection_options, names_argument, run, selector_option, tell
from oarlock.cli.nodes.node_text import (
    UNKNOWN,
    chosen,
    parse_label_change,
    parse_taint_change,
    split_words,
    with_taints,
)
from oarlock.cli.options.options import together
from oarlock.cli.problems import InputProblem
from oarlock.cluster.timestamps import seconds_text
from oarlock.sandbox.nodes.lifecycle import readiness

Obj = dict[str, Any]
Patch = Callable[[Obj], Obj | None]
Write = Callable[[Obj], Awaitable[Written]]

_READY: Final = {
    "True": ("KubeletReady", "kubelet is posting ready status"),
    "False": ("KubeletNotReady", "made not ready by hand"),
    "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
}


choice_options = together(
    selector_option, click.option("--all", "everyone", is_flag=True, help="All nodes."), connection_options
)
"""Which nodes (-l, --all), where, and how to print."""


@click.command(
    epilog="\b\nExamples:\n  oarlock nodes remove node-3\n  oarlock nodes remove -l zone=a\n\n"
    "Their pods are deleted a second later."
)
@names_argument
@choice_options
def remove(names: tuple[str, ...], **where: Any) -> None:
    """Remove nodes. Their pods are deleted."""
    _change("removed", names, lambda api: api.delete, **where)


@click.command(
    epilog="\b\nExamples:\n  oarlock nodes label node-1 zone=a disk=ssd\n"
    "  oarlock nodes label --all zone-        take it away"
)
@click.argument("words", nargs=-1, required=True, metavar="[NODE...] KEY=VALUE|KEY-...")
@choice_options
def label(words: tuple[str, ...], **where: Any) -> None:
    """Set labels, or take them away (KEY-)."""
    names, changes = split_words(words)
    if not changes:
        raise InputProblem("no label is given; write KEY=VALUE, such as zone=a, or KEY- to take it away")
    labels = dict(parse_label_change(word) for word in changes)

    def patch(node: Obj) -> Obj | None:
        have = node["metadata"].get("labels") or {}
        if all(have.get(key) == value for key, value in labels.items()):
            return None
        return {"metadata": {"labels": labels}}

    takes_away = all(value is None for value in labels.values())
    _change("unlabelled" if takes_away else "labelled", names, _patching(patch), **where)


@click.command(
    epilog="\b\nExamples:\n  oarlock nodes taint node-1 dedicated=gpu:NoSchedule\n"
    "  oarlock nodes taint -l zone=a drain:NoExecute\n"
    "  oarlock nodes taint node-1 dedicated-        take it away, whatever its effect\n\n"
    "EFFECT: NoSchedule (no new pods), PreferNoSchedule, NoExecute (pods that do not tolerate it go)."
    " Taints node.kubernetes.io/... follow from a node's state; see cordon and not-ready."
)
@click.argument("words", nargs=-1, required=True, metavar="[NODE...] KEY[=VALUE]:EFFECT|KEY[:EFFECT]-...")
@choice_options
def taint(words: tuple[str, ...], **where: Any) -> None:
    """Set taints, or take them away (KEY-)."""
    names, changes = split_words(words)
    if not changes:
        raise InputProblem("no taint is given; write KEY=VALUE:EFFECT, such as dedicated=gpu:NoSchedule, or KEY-")
    parsed = [parse_taint_change(word) for word in changes]

    def patch(node: Obj) -> Obj | None:
        have = (node.get("spec") or {}).get("taints") or []
        wanted = with_taints(have, parsed)
        return None if wanted == have else {"spec": {"taints": wanted or None}}

    _change("tainted" if any(is_set for _, is_set in parsed) else "untainted", names, _patching(patch), **where)


@click.command(epilog="\b\nExamples:\n  oarlock nodes cordon node-1")
@names_argument
@choice_options
def cordon(names: tuple[str, ...], **where: Any) -> None:
    """Let nodes take no new pods, except daemon pods."""
    _change("cordoned", names, _patching(lambda node: _cordoning(node, wanted=True)), **where)


@click.command(epilog="\b\nExamples:\n  oarlock nodes uncordon --all")
@names_argument
@choice_options
def uncordon(names: tuple[str, ...], **where: Any) -> None:
    """Let nodes take new pods again."""
    _change("uncordoned", names, _patching(lambda node: _cordoning(node, wanted=False)), **where)


@click.command(
    "not-ready",
    epilog="\b\nExamples:\n  oarlock nodes not-ready node-1\n  oarlock nodes not-ready -l zone=a --unreachable\n\n"
    "The node is tainted and its pods are not ready. After five minutes, pods that do not tolerate the taint are"
    " evicted.",
)
@names_argument
@click.option("--unreachable", is_flag=True, help="Their kubelet is silent: pods neither start nor end.")
@choice_options
def not_ready(names: tuple[str, ...], unreachable: bool, **where: Any) -> None:
    """Make nodes fail: NotReady, or Unknown with --unreachable."""
    state = "Unknown" if unreachable else "False"
    what = "unreachable" if unreachable else "not ready"
    _change(what, names, _patching(lambda node: _becoming(node, state), status=True), **where)


@click.command(epilog="\b\nExamples:\n  oarlock nodes ready --all")
@names_argument
@choice_options
def ready(names: tuple[str, ...], **where: Any) -> None:
    """Make nodes Ready again."""
    _change("ready", names, _patching(lambda node: _becoming(node, "True"), status=True), **where)


EDITS: Final[Sequence[click.Command]] = (remove, label, taint, cordon, uncordon, not_ready, ready)


# -- inside ----------------------------------------------------------------------------------------------------------


def _change(
    what: str,
    names: Sequence[str],
    write: Callable[[Nodes], Write],
    *,
    selector: str,
    everyone: bool,
    output: str,
    **where: Any,
) -> None:
    """Write each chosen node once. Raises InputProblem if no node is chosen."""
    if not names and not selector and not everyone:
        raise InputProblem("no node is given; name some, or use --all or --selector zone=a")
    if names and everyone:
        raise InputProblem("NODE and --all exclude each other; leave one out")

    async def work(api: Nodes) -> list[Written]:
        found = chosen(await api.all(selector), names)
        if not found:
            raise InputProblem(f"no node has the labels {selector!r}" if selector else "there are no nodes")
        written = await write_each(found, write(api))
        refuse(written)
        return written

    tell(what, run(work, **where), output)


def _patching(patch: Patch, *, status: bool = False) -> Callable[[Nodes], Write]:
    return lambda api: lambda node: api.change(node, patch, status=status)


def _cordoning(node: Obj, *, wanted: bool) -> Obj | None:
    if bool((node.get("spec") or {}).get("unschedulable")) is wanted:
        return None
    return {"spec": {"unschedulable": True if wanted else None}}


def _becoming(node: Obj, state: str) -> Obj | None:
    if (readiness(node) or UNKNOWN) == state:
        return None
    reason, message = _READY[state]
    at = seconds_text(time.time_ns() // 1_000_000)
    condition = {"type": "Ready", "status": state, "reason": reason, "message": message, "lastTransitionTime": at}
    return {"status": {"conditions": [condition]}}
