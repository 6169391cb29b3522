"""Permissions: which role of the fleet grants what, and one line for each that a process turns out to lack.

The roles are the files helm/oarlock/rbac/*.yaml, which tests/workers/process/test_rights.py holds against this;
docs/rbac.md tells which request needs what.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from oarlock.cluster.forbidden import Permission
from oarlock.controllers.builtin import CONTROLLERREVISIONS
from oarlock.controllers.entries import Controller, CustomController, RolloutController
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.workers.process.log_line import line

ROLES = "helm/oarlock/rbac"
SURE_AFTER_MS = 2_000
"""A server that has just started refuses everything until it has read its roles."""
SAID_AGAIN_MS = 600_000
OF_OPERATOR = "`oarlock rbac`"
"""It prints the roles that a user's own controllers need."""
INGESTOR = ("ingestor.yaml", "lease.yaml")
DRY_RUN = "shadow/dry-run.yaml"
"""Of the workers of a fleet that writes nothing: to read what other workers read."""

log = logging.getLogger("oarlock.rights")

Right = tuple[str, str, str]
"""verb, API group, resource."""


def worker_roles(queues: Sequence[str]) -> tuple[str, ...]:
    """Files of the roles that a worker of these queues needs."""
    served = [CONTROLLERS[queue] for queue in queues if queue in CONTROLLERS]
    return tuple(dict.fromkeys(OF_OPERATOR if isinstance(each, CustomController) else _file(each) for each in served))


def _file(controller: Controller) -> str:
    return f"worker-{controller.flavour.kind.lower()}.yaml"


def _of_worker(controller: Controller) -> Iterator[Right]:
    group, owners, made = controller.owners.group, controller.resource, WATCHED[controller.dependents]
    yield from ((verb, made.group, made.plural) for verb in ("get", "list", "create", "patch", "delete"))
    yield from (("get", group, owners), ("patch", group, f"{owners}/status"), ("update", group, f"{owners}/finalizers"))
    if isinstance(controller, RolloutController):
        yield "patch", group, owners  # to end a rollback that an annotation asks for
    if controller.history:
        revisions = CONTROLLERREVISIONS
        yield from ((verb, revisions.group, revisions.plural) for verb in ("get", "create", "patch", "delete"))
    yield from ((verb, "", "events") for verb in ("create", "patch"))


def grants() -> dict[str, frozenset[Right]]:
    """What each role grants, by file."""
    return {
        "ingestor.yaml": frozenset(
            [(verb, each.group, each.plural) for each in WATCHED.values() for verb in ("list", "watch")]
            + [(verb, "", "events") for verb in ("create", "patch")]
        ),
        "lease.yaml": frozenset((verb, "coordination.k8s.io", "leases") for verb in ("create", "get", "update")),
        DRY_RUN: frozenset(
            right
            for each in CONTROLLERS.values()
            if not isinstance(each, CustomController)
            for right in _of_worker(each)
            if right[0] in ("get", "list")
        ),
        **{
            _file(each): frozenset(_of_worker(each))
            for each in CONTROLLERS.values()
            if not isinstance(each, CustomController)
        },
    }


class MissingRights:
    """Told of every refusal. Each permission makes one line once it has been refused for two seconds, and another where
    it is still missing ten minutes later.

    ``files``: of the roles that the process is meant to have.
    """

    def __init__(self, files: Sequence[str], mono_ms: Callable[[], int]) -> None:
        self._files, self._mono_ms = tuple(files), mono_ms
        self._due_ms: dict[Right, int] = {}

    def __call__(self, permission: Permission) -> None:
        right, now_ms = (permission.verb, permission.group, permission.resource), self._mono_ms()
        if now_ms < self._due_ms.setdefault(right, now_ms + SURE_AFTER_MS):
            return
        self._due_ms[right] = now_ms + SAID_AGAIN_MS
        granted = grants()
        granting = [f"{ROLES}/{file}" for file in self._files if right in granted.get(file, ())]
        if any(isinstance(each, CustomController) for each in CONTROLLERS.values()):
            granting = [OF_OPERATOR]
        facts = {
            "verb": permission.verb,
            "resource": permission.resource,
            "api_group": permission.group,
            "namespace": permission.namespace or "-",
            "user": permission.user or "-",
            "granted_by": " or ".join(granting) or "-",
        }
        log.error(line("permission missing", **facts))
