"""Find the cluster that a command is about; list and write its nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from oarlock.cli.options.options import check_kubeconfig
from oarlock.cli.options.which_up import found_up
from oarlock.cli.problems import InputProblem, NotDone, say
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.listing import ListError, list_all
from oarlock.cluster.resources import NODES, PODS, Resource
from oarlock.sandbox.up.state_dir import StateDir

Obj = dict[str, Any]

TRIES = 8
"""Attempts at a change while others change the same node."""
LINES_MAX = 5
"""Refusals that are printed one by one."""


def cluster_config(kubeconfig: str | None, state_dir: Path | None) -> ClusterConfig:
    """--kubeconfig, else --state-dir, else the running `oarlock up`; never a cluster that nobody named.

    Raises InputProblem.
    """
    if kubeconfig:
        return check_kubeconfig(kubeconfig)
    if state_dir is not None:
        if not StateDir(state_dir).owner_pid() or not StateDir(state_dir).kubeconfig.exists():
            raise InputProblem(
                f"--state-dir {state_dir}: no `oarlock up` runs here;"
                f" start one with: oarlock up --state-dir {state_dir}"
            )
        return check_kubeconfig(str(StateDir(state_dir).kubeconfig))
    state = found_up()
    if state is None:
        raise InputProblem("no `oarlock up` is running; start one, or name a cluster with --kubeconfig")
    if not state.kubeconfig.exists():
        raise InputProblem(f"the `oarlock up` in {state.root} is still starting; ask again")
    say([f"asking the `oarlock up` in {state.root}; --state-dir names another"])
    return check_kubeconfig(str(state.kubeconfig))


@dataclass(frozen=True, slots=True)
class Written:
    """The result for one node: `node` as it is now (None: deleted), or the refusal."""

    name: str
    node: Obj | None = None
    changed: bool = False
    refusal: str = ""


def unusable(config: ClusterConfig, answer: Answer) -> InputProblem:
    """The problem to raise if no API server answers, or it refuses us."""
    if answer.code <= 0:
        return InputProblem(f"no API server answers at {config.address} ({answer.message}); is it running?")
    return InputProblem(f"the API server at {config.address} refuses: {answer.message}")


class Nodes:
    """The nodes behind one client. Use as `async with Nodes(config)`."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._client = Client(config, role="nodes")

    async def __aenter__(self) -> Nodes:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def all(self, selector: str = "") -> list[Obj]:
        """All nodes, or those that the label selector matches, by name. Raises InputProblem."""
        return sorted(await self._list(NODES, selector), key=lambda node: _natural(node["metadata"]["name"]))

    async def pods_by_node(self) -> dict[str, int]:
        """The number of unfinished pods of each node. Raises InputProblem."""
        counts: dict[str, int] = {}
        for pod in await self._list(PODS, ""):
            node = pod["spec"].get("nodeName", "")
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                counts[node] = counts.get(node, 0) + 1
        return counts

    async def _list(self, resource: Resource, selector: str) -> list[Obj]:
        pages = self._client.list_pages(resource, label_selector=selector)
        try:
            _, items = await list_all(pages)
        except ListError as error:
            if error.answer.code == 400 and selector:
                raise InputProblem(f"--selector {selector!r}: {error.answer.message}") from None
            raise unusable(self._config, error.answer) from None
        return [orjson.loads(item) for item in items]

    async def create(self, node: Obj) -> Written:
        name = node["metadata"]["name"]
        answer = await self._client.create(NODES, "", orjson.dumps(node))
        return Written(name, answer.object(), True) if answer.ok else Written(name, refusal=answer.message)

    async def delete(self, node: Obj) -> Written:
        """Delete exactly this node, by uid. A node that is gone already is a success."""
        meta = node["metadata"]
        answer = await self._client.delete(NODES, "", meta["name"], uid=meta["uid"])
        if answer.ok or answer.code == 404:
            return Written(meta["name"], changed=answer.ok)
        return Written(meta["name"], refusal=answer.message)

    async def change(self, node: Obj, patch: Callable[[Obj], Obj | None], *, status: bool = False) -> Written:
        """Apply the patch that `patch` computes from the node; None: nothing to change.

        The write names the resourceVersion that the patch was computed from. After a conflict it is computed again.
        """
        name = node["metadata"]["name"]
        for _ in range(TRIES):
            wanted = patch(node)
            if wanted is None:
                return Written(name, node)
            meta = {**(wanted.get("metadata") or {}), "resourceVersion": node["metadata"]["resourceVersion"]}
            body = orjson.dumps({**wanted, "metadata": meta})
            kind = PatchType.STRATEGIC if status else PatchType.MERGE
            answer = await self._client.patch(NODES, "", name, body, kind, subresource="status" if status else "")
            if answer.ok:
                return Written(name, answer.object(), True)
            if answer.code != 409:
                return Written(name, refusal=answer.message)
            look = await self._client.get(NODES, "", name)
            if not look.ok:
                return Written(name, refusal=look.message)
            node = look.object()
        return Written(name, refusal="somebody else keeps changing it; try again")


async def write_each(nodes: Sequence[Obj], write: Callable[[Obj], Awaitable[Written]]) -> list[Written]:
    """Write all nodes concurrently; the results are in the order of ``nodes``."""
    return list(await asyncio.gather(*(write(node) for node in nodes)))


def refuse(written: Sequence[Written]) -> None:
    """Raises NotDone (exit code 1) if a write was refused, with a line for each of the first refusals."""
    refused = [done for done in written if done.refusal]
    if not refused:
        return
    lines = [f"node {done.name!r}: {done.refusal}" for done in refused[:LINES_MAX]]
    if len(refused) > LINES_MAX:
        lines.append(f"... and {len(refused) - LINES_MAX} more; {len(written) - len(refused)} were done")
    raise NotDone(*lines)


def _natural(name: str) -> tuple[str, int, str]:
    """A sort key that puts node-10 after node-9."""
    head = name.rstrip("0123456789")
    tail = name[len(head) :]
    return head, int(tail) if tail else -1, name
