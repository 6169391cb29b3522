"""What a plan asks the cluster: the objects that turns over the owner read, and dry runs of writes. Nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.answer import Answer
from oarlock.cluster.dry_run import DryRuns
from oarlock.cluster.forbidden import Permission
from oarlock.cluster.listing import ListError, list_all
from oarlock.cluster.reader import Reader
from oarlock.cluster.resources import Resource
from oarlock.controllers.registry import CONTROLLERS, QUEUE_OF_KIND, WATCHED
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.kinds import cluster_resource

Obj = dict[str, Any]
KUBECTL = "kubectl-client-side-apply"
"""In whose name `kubectl apply` writes. So the answer is the one that kubectl would get."""


def resources_read(kind: str) -> tuple[str, ...]:
    """What turns over an owner of this kind read, owners first: an orphan is routed to the owners that are known."""
    controller = CONTROLLERS[QUEUE_OF_KIND[kind]]
    children = dict.fromkeys(resource for resource, _, _ in controller.children)
    pods = [] if "pods" in children else ["pods"]
    return (controller.resource, *controller.local_caches, *reversed(children), *pods)


@dataclass(frozen=True, slots=True)
class Read:
    """``live``: the owner, None where there is none. ``lists``: the objects of each resource but the owner's."""

    live: Obj | None
    lists: dict[str, list[Obj]]


def _forbidden_is_told(_: Permission) -> None:
    """Each command tells by itself which right it lacks."""


class LiveCluster:
    """One connection. Use as a context manager. Raises ConfigError for unusable credentials."""

    def __init__(self, config: ClusterConfig) -> None:
        self._io = IoLoop()
        self._reader: Reader = self._io.run(self._open(config))
        self._lists: dict[tuple[str, str], list[Obj]] = {}

    async def _open(self, config: ClusterConfig) -> Reader:
        return Reader(config, role="plan", on_forbidden=_forbidden_is_told)

    def close(self) -> None:
        self._io.run(self._reader.close())
        self._io.close()

    def read(self, kind: str, namespace: str, name: str) -> Read:
        """Raises InputProblem for a right that is missing, NotDone if the server gives no answer."""
        owners, *others = resources_read(kind)
        answer = self._io.run(self._reader.get(cluster_resource(WATCHED[owners]), namespace, name))
        if not answer.ok and answer.code != 404:
            raise _problem("get", owners, namespace, answer)
        for resource in others:
            at = (resource, namespace if WATCHED[resource].namespaced else "")
            if at not in self._lists:
                self._lists[at] = self._list(*at)
        lists = {each: self._lists[each, namespace if WATCHED[each].namespaced else ""] for each in others}
        return Read(answer.object() if answer.ok else None, lists)

    def _list(self, resource: str, namespace: str) -> list[Obj]:
        pages = self._reader.list_pages(cluster_resource(WATCHED[resource]), namespace=namespace)
        try:
            _, items = self._io.run(list_all(pages))
        except ListError as error:
            raise _problem("list", resource, namespace, error.answer) from None
        return [orjson.loads(each) for each in items]

    def dry_create(self, resource: Resource, namespace: str, obj: Obj) -> Answer:
        """What the server would answer to a create."""
        body = orjson.dumps(obj)
        return self._io.run(self._dry_runs.create(resource, namespace, body))

    def dry_patch(self, resource: Resource, namespace: str, name: str, patch: Obj) -> Answer:
        """What the server would answer to a strategic merge patch."""
        return self._io.run(self._dry_runs.patch(resource, namespace, name, orjson.dumps(patch)))

    @property
    def _dry_runs(self) -> DryRuns:
        return DryRuns(self._reader, KUBECTL)


def _problem(verb: str, resource: str, namespace: str, answer: Answer) -> InputProblem:
    where = f" in {namespace}" if namespace else ""
    if answer.code == 403:
        return InputProblem(
            f"may not {verb} {resource}{where}: {answer.message}; give these credentials the rights of docs/plan.md, or"
            " choose others with --kubeconfig"
        )
    if answer.code == 401:
        return InputProblem(f"the server knows no such user ({answer.message}); log in anew, or see --kubeconfig")
    return NotDone(f"cannot {verb} {resource}{where}: {answer.message}")
