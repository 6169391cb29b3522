"""The roles' files against what the fleet says of them, and what is said when a permission is missing."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.client import Client
from cluster.config import ClusterConfig
from cluster.embedded.faults import Action, Fault
from cluster.embedded.server import EmbeddedCluster
from cluster.embedded.server import Settings as ServerSettings
from cluster.forbidden import Permission
from cluster.resources import DAEMONSETS, PODS
from cluster.watch import Broken
from controllers.registry import QUEUES
from workers.rights import GRANTS, INGESTOR, ROLES, SAID_AGAIN_MS, MissingRights, worker_roles

FOLDER = Path(__file__).parents[2] / ROLES
CREATE_PODS = Permission("create", "", "pods", "ns", "me")


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


@pytest.mark.parametrize("file", GRANTS)
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
    assert set(rights) == GRANTS[file]
    assert not {"*"} & {word for right in rights for word in right}


def test_every_role_is_bound_to_an_account() -> None:
    bindings = documents("bindings.yaml")
    accounts = {each["metadata"]["name"] for each in bindings if each["kind"] == "ServiceAccount"}
    bound = {each["roleRef"]["name"]: each for each in bindings if each["kind"].endswith("Binding")}
    roles = {documents(file)[0]["metadata"]["name"]: documents(file)[0] for file in GRANTS}
    assert set(bound) == set(roles)
    for name, binding in bound.items():
        assert binding["roleRef"]["kind"] == roles[name]["kind"]
        assert {subject["name"] for subject in binding["subjects"]} <= accounts


def said(rights: MissingRights, caplog: pytest.LogCaptureFixture, *permissions: Permission) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.ERROR, "oarlock.rights"):
        for each in permissions:
            rights(each)
    return [record.message for record in caplog.records]


def test_one_line_with_the_file_that_grants_it(caplog: pytest.LogCaptureFixture) -> None:
    rights = MissingRights(worker_roles(["replicaset"]), lambda: 0)
    assert said(rights, caplog, CREATE_PODS) == [
        'event="permission missing" verb=create resource=pods api_group="" namespace=ns user=me '
        "granted_by=helm/oarlock/rbac/worker-replicaset.yaml"
    ]


def test_a_worker_of_all_kinds_names_every_role_that_would_do(caplog: pytest.LogCaptureFixture) -> None:
    rights = MissingRights(worker_roles(QUEUES), lambda: 0)
    (line,) = said(rights, caplog, CREATE_PODS)
    assert line.count(".yaml") == 3
    (line,) = said(rights, caplog, Permission("create", "apps", "controllerrevisions"))
    assert line.endswith("granted_by=helm/oarlock/rbac/worker-daemonset.yaml")
    (line,) = said(rights, caplog, Permission("get", "", "/version"))
    assert line.endswith("granted_by=-")


def test_the_same_is_said_again_after_a_while_only(caplog: pytest.LogCaptureFixture) -> None:
    now_ms = [0]
    rights = MissingRights(INGESTOR, lambda: now_ms[0])
    elsewhere = CREATE_PODS._replace(namespace="other")
    assert len(said(rights, caplog, CREATE_PODS, elsewhere, CREATE_PODS._replace(verb="list"))) == 2
    now_ms[0] = SAID_AGAIN_MS - 1
    assert said(rights, caplog, CREATE_PODS) == []
    now_ms[0] = SAID_AGAIN_MS
    assert len(said(rights, caplog, CREATE_PODS)) == 1


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
                    await anext(client.watch(DAEMONSETS, "1"))
        finally:
            await server.stop()

    asyncio.run(ask())
    assert told == [
        Permission("create", "", "pods", "default", "embedded"),
        Permission("patch", "apps", "daemonsets/status", "default", "embedded"),
        Permission("watch", "apps", "daemonsets", "", "embedded"),
    ]
