"""Each verb of each rule of the fleet's roles: with it a request is let in, without it a line says what is missing."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import orjson
import pytest

from oarlock.cluster.access.config import load
from oarlock.cluster.client import Client
from oarlock.cluster.event_correlator import Note, ObjectRef
from oarlock.cluster.events import EventRecorder
from oarlock.cluster.forbidden import Permission
from oarlock.cluster.lease import LeaseError, LeaseSpec
from oarlock.cluster.listing import ListError, list_all
from oarlock.cluster.resources import CONTROLLERREVISIONS
from oarlock.cluster.watch import Broken
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.workers.process.kinds import cluster_resource
from oarlock.workers.process.rights import SURE_AFTER_MS, MissingRights, grants
from tests.realserver.accounts import apply, bind, kubectl, role, without
from tests.realserver.server import RealServer, User

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(os.environ.get("OARLOCK_TEST_SERVER") != "real", reason="make test-cluster has a real server"),
]

USERS = {file: User(file.removesuffix(".yaml")) for file in grants()}
RIGHTS = [(file, *right) for file in grants() for right in sorted(grants()[file])]
ARRIVES_S = 60.0
NAMESPACE = "rights"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    flags = ["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
    folder = tmp_path_factory.mktemp("server")
    with RealServer(folder, users=list(USERS.values()), rbac=True, flags=flags) as made:
        kubectl(made, "create", "namespace", NAMESPACE)
        for file, user in USERS.items():
            bind(made, role(file), user.name)
        yield made


class Asking:
    """One request for each right, as the fleet makes it. Each in a client of its own, whose refusals are in `told`."""

    def __init__(self, server: RealServer, file: str) -> None:
        self._config = load(server.kubeconfig_of(USERS[file]))
        self._owner = next((c for c in CONTROLLERS.values() if file == f"worker-{c.flavour.kind.lower()}.yaml"), None)
        self.told: list[Permission] = []
        self.now_ms = 0
        self._rights = MissingRights([file], lambda: self.now_ms)

    def __call__(self, verb: str, group: str, resource: str) -> list[Permission]:
        """What the server said is missing."""
        self.told.clear()
        asyncio.run(asyncio.wait_for(self._ask(verb, group, resource), 100))
        return list(self.told)

    def _hear(self, permission: Permission) -> None:
        self.told.append(permission)
        self._rights(permission)

    async def _ask(self, verb: str, group: str, resource: str) -> None:
        async with Client(self._config, on_forbidden=self._hear) as client:
            match verb, resource:
                case _, "leases":
                    await self._ask_of_lease(client, verb)
                case _, "events":
                    await self._tell_twice(client)
                case "list", _:
                    with suppress(ListError):
                        await list_all(client.list_pages(cluster_resource(WATCHED[resource])))
                case "watch", _:
                    with suppress(Broken):
                        async for _ in client.watch_batches(cluster_resource(WATCHED[resource]), "1", life_s=1):
                            break
                case "update", _:
                    await self._make(client, "owned")
                case "create", "pods" | "replicasets":
                    await self._make(client, "p")
                case "create", _:
                    body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"}}
                    await client.create(CONTROLLERREVISIONS, NAMESPACE, orjson.dumps({**body, "revision": 1}))
                case "get", _:
                    await client.get(cluster_resource(WATCHED[resource]), NAMESPACE, "p")
                case "delete", _:
                    await client.delete(cluster_resource(WATCHED[resource]), NAMESPACE, "p", uid="u")
                case "patch", _:
                    plural, _, part = resource.partition("/")
                    await client.patch(cluster_resource(WATCHED[plural]), NAMESPACE, "p", b"{}", subresource=part)
                case _:
                    raise AssertionError(f"nothing asks for {verb} {resource}")

    async def _make(self, client: Client, name: str) -> None:
        """A pod or a ReplicaSet as a controller makes it: deleting its owner waits for it."""
        assert self._owner is not None
        made = WATCHED[self._owner.dependents]
        flavour = self._owner.flavour
        reference: dict[str, Any] = {"apiVersion": flavour.api_version, "kind": flavour.kind, "name": "o", "uid": "u"}
        reference |= {"controller": True, "blockOwnerDeletion": True}
        metadata = {"name": name, "ownerReferences": [reference]}
        labels = {"app": name}
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "nginx"}]}
        if made.kind == "ReplicaSet":
            template = {"metadata": {"labels": labels}, "spec": spec}
            spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        body = {"apiVersion": made.api_version, "kind": made.kind, "metadata": metadata, "spec": spec}
        await client.create(cluster_resource(made), NAMESPACE, orjson.dumps(body))

    async def _ask_of_lease(self, client: Client, verb: str) -> None:
        cell = client.lease("kube-system", "oarlock")
        spec = LeaseSpec(holder="me", duration_s=10)
        if verb == "create":
            await cell.swap(None, spec)
            return
        with suppress(LeaseError):
            held = await cell.read()
            assert held is not None, "the first right asked for is create"
            await cell.swap(held, spec)

    async def _tell_twice(self, client: Client) -> None:
        """The second of the same is a patch of the first."""
        recorder = EventRecorder(client)
        recorder.start()
        about = ObjectRef("v1", "Pod", NAMESPACE, f"p{time.monotonic_ns()}", "u", "1")
        for _ in range(2):
            recorder.tell(Note(about, "Normal", "Tested", "a message", "oarlock", "here"))
        await recorder.close()


def within(happened: Callable[[], bool], what: str) -> None:
    """Rights arrive at the authorizer by a watch."""
    ends_s = time.monotonic() + ARRIVES_S
    while not happened():
        assert time.monotonic() < ends_s, what
        time.sleep(0.05)


@pytest.mark.parametrize(("file", "verb", "group", "resource"), RIGHTS)
def test_every_verb_is_asked_for_and_missed_by_name(
    server: RealServer, file: str, verb: str, group: str, resource: str, caplog: pytest.LogCaptureFixture
) -> None:
    asking = Asking(server, file)
    within(lambda: asking(verb, group, resource) == [], "with the whole role nothing is missing")
    whole = role(file)
    apply(server, without(whole, verb, group, resource))
    try:
        with caplog.at_level(logging.ERROR, "oarlock.rights"):
            within(lambda: asking(verb, group, resource) != [], "the refusal is understood")
            asking.now_ms = SURE_AFTER_MS
            for _ in range(2):
                asking(verb, group, resource)
    finally:
        apply(server, whole)
    missing = {each[:3] for each in asking.told}
    assert missing == {(verb, group, resource)}
    (line,) = [record.message for record in caplog.records if record.name == "oarlock.rights"]
    group_text = group or '""'
    assert f'event="permission missing" verb={verb} resource={resource} api_group={group_text}' in line
    assert line.endswith(f"granted_by=helm/oarlock/rbac/{file}")
