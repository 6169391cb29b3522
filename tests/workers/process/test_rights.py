"""The roles' files against what the fleet says of them, and what is said when a permission is missing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
import yaml

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.cluster.forbidden import Permission
from oarlock.cluster.resources import DAEMONSETS, PODS
from oarlock.cluster.watch import Broken
from oarlock.controllers.registry import all_queues
from oarlock.sandbox.apiserver.http.faults import Action, Fault
from oarlock.sandbox.apiserver.server import EmbeddedCluster
from oarlock.sandbox.apiserver.server import Settings as ServerSettings
from oarlock.workers.epoch.fleet_lease import lease_name
from oarlock.workers.process.rights import (
    DRY_RUN,
    INGESTOR,
    ROLES,
    SAID_AGAIN_MS,
    SURE_AFTER_MS,
    MissingRights,
    grants,
    worker_roles,
)
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine.api import KubeApi
from tests import ROOT

FOLDER = ROOT / ROLES
CREATE_PODS = Permission("create", "", "pods", "ns", "me")


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


@pytest.mark.parametrize("file", grants())
def test_a_file_grants_what_is_said_of_it(file: str) -> None:
    (role,) = documents(file)
    rights = [
        (verb, group, resource)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
    assert len(rights) == len(set(rights)), "granted twice"
    assert set(rights) == grants()[file]
    assert not {"*"} & {word for right in rights for word in right}


@pytest.mark.parametrize("file", grants())
def test_a_file_is_explained(file: str) -> None:
    assert f"`{file}`" in (ROOT / "docs" / "rbac.md").read_text()


def test_every_role_is_bound_to_an_account() -> None:
    bindings = documents("bindings.yaml")
    accounts = {each["metadata"]["name"] for each in bindings if each["kind"] == "ServiceAccount"}
    bound = {each["roleRef"]["name"]: each for each in bindings if each["kind"].endswith("Binding")}
    in_fleet = [file for file in grants() if file != DRY_RUN]  # whose accounts are no part of a fleet that works
    roles = {documents(file)[0]["metadata"]["name"]: documents(file)[0] for file in in_fleet}
    assert set(bound) == set(roles)
    for name, binding in bound.items():
        assert binding["roleRef"]["kind"] == roles[name]["kind"]
        assert {subject["name"] for subject in binding["subjects"]} <= accounts


class Said:
    """A process with some roles, and the lines it logs."""

    def __init__(self, files: Sequence[str], caplog: pytest.LogCaptureFixture) -> None:
        self.now_ms = 0
        self._rights, self._caplog = MissingRights(files, lambda: self.now_ms), caplog

    def of(self, *permissions: Permission) -> list[str]:
        """What is said of refusals that come now."""
        self._caplog.clear()
        with self._caplog.at_level(logging.ERROR, "oarlock.rights"):
            for each in permissions:
                self._rights(each)
        return [record.message for record in self._caplog.records]

    def of_lasting(self, permission: Permission) -> list[str]:
        """What is said of a refusal that is no passing one."""
        assert self.of(permission) == []
        self.now_ms += SURE_AFTER_MS
        return self.of(permission)


def test_one_line_with_the_file_that_grants_it(caplog: pytest.LogCaptureFixture) -> None:
    assert Said(worker_roles(["replicaset"]), caplog).of_lasting(CREATE_PODS) == [
        'event="permission missing" verb=create resource=pods api_group="" namespace=ns user=me '
        "granted_by=helm/oarlock/rbac/worker-replicaset.yaml"
    ]


def test_a_worker_of_all_kinds_names_every_role_that_would_do(caplog: pytest.LogCaptureFixture) -> None:
    said = Said(worker_roles(all_queues()), caplog)
    (line,) = said.of_lasting(CREATE_PODS)
    assert line.count(".yaml") == 3
    (line,) = said.of_lasting(Permission("create", "apps", "controllerrevisions"))
    assert line.endswith("granted_by=helm/oarlock/rbac/worker-daemonset.yaml")
    (line,) = said.of_lasting(Permission("get", "", "/version"))
    assert line.endswith("granted_by=-")


def test_a_server_that_has_just_started_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    said = Said(INGESTOR, caplog)
    assert said.of(*[CREATE_PODS] * 3) == []
    said.now_ms = SURE_AFTER_MS - 1
    assert said.of(CREATE_PODS) == []
    said.now_ms = SURE_AFTER_MS
    assert len(said.of(CREATE_PODS)) == 1


def test_the_same_is_said_again_after_a_while_only(caplog: pytest.LogCaptureFixture) -> None:
    said = Said(INGESTOR, caplog)
    assert len(said.of_lasting(CREATE_PODS)) == 1
    elsewhere, another = CREATE_PODS._replace(namespace="other"), CREATE_PODS._replace(verb="list")
    assert said.of(elsewhere) == []
    assert len(said.of_lasting(another)) == 1
    said.now_ms = SURE_AFTER_MS + SAID_AGAIN_MS - 1
    assert said.of(CREATE_PODS) == []
    said.now_ms += 1
    assert len(said.of(CREATE_PODS)) == 1


def test_the_embedded_server_refuses_as_an_authorizer_does() -> None:
    told: list[Permission] = []

    async def ask() -> None:
        forbid = Fault(Action.FORBID, verbs=("*",), user_agent="oarlock")
        server = EmbeddedCluster(ServerSettings(faults_enabled=True, faults=(forbid,)))
        url = await server.start()
        try:
            async with Client(ClusterConfig(url), on_forbidden=told.append) as client:
                answer = await client.create(PODS, "default", b"{}")
                assert answer.code == 403
                await client.patch(DAEMONSETS, "default", "d", b"{}", subresource="status")
                with pytest.raises(Broken, match="cannot watch"):
                    await anext(client.watch_batches(DAEMONSETS, "1"))
        finally:
            await server.stop()

    asyncio.run(ask())
    assert told == [
        Permission("create", "", "pods", "default", "embedded"),
        Permission("patch", "apps", "daemonsets/status", "default", "embedded"),
        Permission("watch", "apps", "daemonsets", "", "embedded"),
    ]


@pytest.mark.parametrize(("code", "answers"), [(200, True), (403, True), (401, False), (500, False)])
def test_a_server_that_will_not_tell_its_version_answers_all_the_same(code: int, answers: bool) -> None:
    class Version(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Version) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        api = KubeApi(ClusterConfig(f"http://127.0.0.1:{server.server_port}"), Settings())
        try:
            assert api.probe() is answers
        finally:
            api.close()
            server.shutdown()


def test_the_accounts_of_a_shadow_may_write_their_lease_alone() -> None:
    objects = {(each["kind"], each["metadata"]["name"]): each for each in documents("shadow/shadow.yaml")}
    bound = {each["roleRef"]["name"] for (kind, _), each in objects.items() if kind.endswith("Binding")}
    assert bound == {"oarlock-shadow-ingestor", "oarlock-dry-run", "oarlock-shadow-lease"}
    reads = objects["ClusterRole", "oarlock-shadow-ingestor"]["rules"]
    assert reads == [each for each in documents("ingestor.yaml")[0]["rules"] if set(each["verbs"]) == {"list", "watch"}]
    create, own = objects["Role", "oarlock-shadow-lease"]["rules"]
    assert create["resources"] == own["resources"] == ["leases"]
    assert own["resourceNames"] == [lease_name(Settings(dry_run=True, fleet_id="shadow").tag)]
    assert {verb for verb, _, _ in grants()[DRY_RUN]} == {"get", "list"}
