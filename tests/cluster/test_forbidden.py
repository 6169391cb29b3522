"""Which permission a 403 says is missing, in the words of kube-apiserver 1.20."""

import json

import pytest
from aiohttp import web

from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client
from oarlock.cluster.forbidden import Permission, missing_permission
from oarlock.cluster.listing import ListError
from oarlock.cluster.resources import PODS, REPLICASETS
from oarlock.cluster.watch import Broken
from tests.cluster.client_helpers import config_of, looped, serving

PATH = "/api/v1/namespaces/ns/pods?timeout=4000ms"
USER = "system:serviceaccount:oarlock:oarlock-worker"


def refused(message: str, code: int = 403) -> Answer:
    body = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": message, "code": code}
    return Answer(code, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        (
            f'pods is forbidden: User "{USER}" cannot create resource "pods" in API group "" in the namespace "ns"',
            Permission("create", "", "pods", "ns", USER),
        ),
        (
            f'replicasets.apps "web" is forbidden: User "{USER}" cannot patch resource "replicasets/status"'
            ' in API group "apps" in the namespace "ns": RBAC: clusterrole.rbac.authorization.k8s.io "x" not found',
            Permission("patch", "apps", "replicasets/status", "ns", USER),
        ),
        (
            f'nodes is forbidden: User "{USER}" cannot watch resource "nodes" in API group "" at the cluster scope',
            Permission("watch", "", "nodes", "", USER),
        ),
        (
            f'forbidden: User "{USER}" cannot get path "/version"',
            Permission("get", "", "/version", "", USER),
        ),
        (
            'pods "a" is forbidden: cannot set an ownerRef on a resource you can\'t delete: , <nil>',
            Permission("delete", "", "pods", "ns"),
        ),
        ('pods "a" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2', None),
        ('pods "a" is forbidden: unable to create new content in namespace ns because it is being terminated', None),
    ],
)
def test_what_is_missing(message: str, missing: Permission | None) -> None:
    assert missing_permission(refused(message), PATH) == missing


@pytest.mark.parametrize(
    ("api_version", "kind", "group", "resource"),
    [
        ("apps/v1", "DaemonSet", "apps", "daemonsets/finalizers"),
        ("v1", "ReplicationController", "", "replicationcontrollers/finalizers"),
    ],
)
def test_an_owner_whose_deletion_is_to_wait(api_version: str, kind: str, group: str, resource: str) -> None:
    references = [{"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "blockOwnerDeletion": True}]
    body = json.dumps({"metadata": {"ownerReferences": references}}).encode()
    told = (
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
    )
    answer = refused(f'pods "a" is forbidden: {told}')
    assert missing_permission(answer, PATH, body) == Permission("update", group, resource, "ns")


@pytest.mark.parametrize("answer", [Answer(403, b"no entry"), refused('User "x" cannot get resource "pods"', 404)])
def test_what_is_no_refusal_of_the_server(answer: Answer) -> None:
    assert missing_permission(answer, PATH) is None


@looped
async def test_every_kind_of_request_tells() -> None:
    message = 'x is forbidden: User "u" cannot {} resource "pods" in API group "" in the namespace "ns"'

    async def refuse(request: web.Request) -> web.Response:
        answer = refused(message.format(request.method.lower()))
        return web.Response(status=403, body=answer.body, content_type="application/json")

    told: list[Permission] = []
    async with serving(refuse) as url, Client(config_of(url), on_forbidden=told.append) as client:
        await client.get(PODS, "ns", "a")
        await client.create(PODS, "ns", b"{}")
        await client.delete(PODS, "ns", "a")
        with pytest.raises(Broken, match="cannot get"):
            await anext(client.watch_batches(REPLICASETS, "1"))
        with pytest.raises(ListError, match="cannot get"):
            await anext(client.list_pages(PODS))
    assert [each.verb for each in told] == ["get", "post", "delete", "get", "get"]
