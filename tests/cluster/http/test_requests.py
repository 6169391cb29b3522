"""The paths, bodies and tokens of the client's methods."""

import orjson
import pytest
from aiohttp import web

from oarlock.cluster import resources
from oarlock.cluster.answer import TOO_LATE
from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.http.throttle import TokenBucket
from oarlock.cluster.lease import LeaseError, LeaseSpec, Swap
from oarlock.cluster.resources import LEASES, NODES, PODS, REPLICASETS, Resource
from oarlock.cluster.timestamps import micro_text, seconds_text, unix_ms
from tests.cluster.client_helpers import FakeTime, config_of, json_response, looped, serving, status_response


class Recorder:
    """Answers `{}` and remembers (method, path, content type, body)."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str, bytes]] = []

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.seen.append((request.method, request.path, request.headers.get("Content-Type", ""), body))
        return json_response({})


@pytest.mark.parametrize(
    ("resource", "collection", "item"),
    [
        (PODS, "/api/v1/namespaces/ns/pods", "/api/v1/namespaces/ns/pods/x"),
        (REPLICASETS, "/apis/apps/v1/namespaces/ns/replicasets", "/apis/apps/v1/namespaces/ns/replicasets/x"),
        (
            LEASES,
            "/apis/coordination.k8s.io/v1/namespaces/ns/leases",
            "/apis/coordination.k8s.io/v1/namespaces/ns/leases/x",
        ),
    ],
)
def test_paths_in_a_namespace(resource, collection, item):
    assert (resource.collection("ns"), resource.item("ns", "x")) == (collection, item)


def test_paths_without_a_namespace():
    assert NODES.collection() == "/api/v1/nodes"
    assert NODES.item("", "n1", "status") == "/api/v1/nodes/n1/status"
    assert PODS.collection() == "/api/v1/pods"
    assert PODS.item("a/b", "c?d") == "/api/v1/namespaces/a%2Fb/pods/c%3Fd"


@pytest.mark.parametrize(
    ("resource", "namespace", "name"), [(PODS, "ns", ""), (PODS, "", "x"), (NODES, "", ""), (NODES, "ns", "x")]
)
def test_a_path_that_would_mean_something_else_is_refused(resource, namespace, name):
    """DELETE on a path without a name would delete the collection."""
    with pytest.raises(ValueError):
        resource.item(namespace, name)


def test_every_resource_has_its_own_path():
    all_of_them = [value for value in vars(resources).values() if isinstance(value, Resource)]
    assert len({resource.collection() for resource in all_of_them}) == len(all_of_them) == 10
    assert {resource.api_version for resource in all_of_them} == {"v1", "apps/v1", "coordination.k8s.io/v1"}


@looped
async def test_writes():
    recorder = Recorder()
    async with serving(recorder.handle) as url, Client(config_of(url)) as client:
        await client.create(PODS, "ns", b'{"a":1}')
        await client.patch(PODS, "ns", "p", b"{}")
        await client.patch(PODS, "ns", "p", b"[]", PatchType.JSON)
        await client.patch(PODS, "ns", "p", b"{}", PatchType.STRATEGIC, subresource="status")
        await client.put(REPLICASETS, "ns", "r", b"{}", subresource="status")
        await client.put(REPLICASETS, "ns", "r", b"{}")
        with pytest.raises(ValueError):
            await client.create(PODS, "", b"{}")
    pod, rs = "/api/v1/namespaces/ns/pods", "/apis/apps/v1/namespaces/ns/replicasets/r"
    assert recorder.seen == [
        ("POST", pod, "application/json", b'{"a":1}'),
        ("PATCH", f"{pod}/p", "application/merge-patch+json", b"{}"),
        ("PATCH", f"{pod}/p", "application/json-patch+json", b"[]"),
        ("PATCH", f"{pod}/p/status", "application/strategic-merge-patch+json", b"{}"),
        ("PUT", f"{rs}/status", "application/json", b"{}"),
        ("PUT", rs, "application/json", b"{}"),
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, {}, id="bare"),
        pytest.param({"uid": "u"}, {"preconditions": {"uid": "u"}}, id="uid"),
        pytest.param(
            {"uid": "u", "resource_version": "7"},
            {"preconditions": {"uid": "u", "resourceVersion": "7"}},
            id="uid and version",
        ),
        pytest.param({"grace_s": 0}, {"gracePeriodSeconds": 0}, id="at once"),
        pytest.param({"propagation": "Orphan"}, {"propagationPolicy": "Orphan"}, id="orphan"),
    ],
)
@looped
async def test_deletes(options, expected):
    recorder = Recorder()
    async with serving(recorder.handle) as url, Client(config_of(url)) as client:
        await client.delete(PODS, "ns", "p", **options)
    [(method, path, _, body)] = recorder.seen
    assert (method, path) == ("DELETE", "/api/v1/namespaces/ns/pods/p")
    assert orjson.loads(body) == {"apiVersion": "v1", "kind": "DeleteOptions", **expected}


@looped
async def test_requests_take_tokens_unless_prepaid():
    """Reads and plain writes wait for a token; what was paid for before it was recorded does not."""
    time = FakeTime()
    bucket = TokenBucket(10, 5, time, time.sleep)
    recorder = Recorder()
    async with serving(recorder.handle) as url, Client(config_of(url), limiter=bucket) as client:
        assert client.limiter.try_take(5) == 5
        for _ in range(5):
            await client.create(PODS, "ns", b"{}", prepaid=True)
        assert time.slept == []
        await client.get(PODS, "ns", "p")
        await client.put(REPLICASETS, "ns", "r", b"{}", subresource="status")
        await client.delete(PODS, "ns", "p")
        assert time.slept == [pytest.approx(0.1)] * 3
        await client.probe()
        assert len(time.slept) == 3


@looped
async def test_a_deadline_that_passes_while_waiting_for_a_token_holds():
    time = FakeTime()
    bucket = TokenBucket(1, 1, time, time.sleep)
    recorder = Recorder()
    async with serving(recorder.handle) as url, Client(config_of(url), limiter=bucket, clock=time) as client:
        bucket.try_take(1)
        answer = await client.create(PODS, "ns", b"{}", deadline_s=time() + 0.5)
    assert answer.code == TOO_LATE
    assert recorder.seen == []


class LeaseServer:
    """One Lease with the server's check of the resourceVersion."""

    def __init__(self) -> None:
        self.lease: dict | None = None
        self.rv = 0
        self.fail_next: web.Response | None = None

    async def handle(self, request: web.Request) -> web.Response:
        if self.fail_next is not None:
            failing, self.fail_next = self.fail_next, None
            return failing
        if request.method == "GET":
            return status_response(404, "NotFound") if self.lease is None else json_response(self.lease)
        given = orjson.loads(await request.read())
        if request.method == "POST" and self.lease is not None:
            return status_response(409, "AlreadyExists")
        if request.method == "PUT":
            if self.lease is None:
                return status_response(404, "NotFound")
            if given["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                return status_response(409, "Conflict")
        self.rv += 1
        given["metadata"]["resourceVersion"] = str(self.rv)
        self.lease = given
        return json_response(given, 201 if request.method == "POST" else 200)


@looped
async def test_a_lease_is_won_once():
    """Two who read the same state: one wins, the other learns that it lost; nothing of the loser is written."""
    server = LeaseServer()
    async with serving(server.handle) as url, Client(config_of(url)) as client:
        cell = client.lease("kube-system", "fleet")
        assert await cell.read() is None
        first = LeaseSpec(holder="a", duration_s=5, renewed_ms=1_700_000_000_123, annotations={"epoch": "1"})
        won, mine, _ = await cell.swap(None, first)
        assert won is Swap.WON
        assert mine is not None
        assert mine.spec == first
        assert (await cell.swap(None, LeaseSpec(holder="b")))[0] is Swap.LOST
        seen = await cell.read()
        assert seen is not None
        assert seen.spec == first
        won, newer, _ = await cell.swap(seen, LeaseSpec(holder="a", transitions=1))
        assert won is Swap.WON
        assert (await cell.swap(mine, LeaseSpec(holder="b")))[0] is Swap.LOST
        server.lease = None
        assert (await cell.swap(newer, LeaseSpec(holder="b")))[0] is Swap.LOST


@looped
async def test_a_swap_keeps_what_others_put_into_the_lease():
    server = LeaseServer()
    async with serving(server.handle) as url, Client(config_of(url)) as client:
        cell = client.lease("ns", "fleet")
        server.lease = {
            "kind": "Lease",
            "metadata": {"name": "fleet", "namespace": "ns", "resourceVersion": "9", "labels": {"team": "x"}},
            "spec": {"holderIdentity": "a", "strategy": "OldestEmulationVersion", "renewTime": "2026-01-01T00:00:00Z"},
        }
        seen = await cell.read()
        assert seen is not None
        assert seen.spec.renewed_ms == 1_767_225_600_000
        assert (await cell.swap(seen, LeaseSpec(annotations={"epoch": "2"})))[0] is Swap.WON
    assert server.lease["metadata"]["labels"] == {"team": "x"}
    assert server.lease["metadata"]["annotations"] == {"epoch": "2"}
    assert server.lease["spec"] == {"strategy": "OldestEmulationVersion", "leaseTransitions": 0}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (json_response({"kind": "Status", "status": "Success"}, 201), Swap.UNKNOWN),
        (web.Response(text="<html>"), Swap.UNKNOWN),
        (status_response(403, "Forbidden"), Swap.REFUSED),
        (status_response(404, "NotFound"), Swap.REFUSED),
        (web.Response(status=429), Swap.REFUSED),
        (status_response(500, "InternalError"), Swap.UNKNOWN),
        (web.Response(status=502, text="bad gateway"), Swap.UNKNOWN),
    ],
    ids=["another kind", "a page", "rights", "no such namespace", "throttled", "failed", "proxy"],
)
@looped
async def test_a_swap_that_was_not_answered_plainly(response, expected):
    server = LeaseServer()
    server.fail_next = response
    async with serving(server.handle) as url, Client(config_of(url)) as client:
        assert (await client.lease("ns", "fleet").swap(None, LeaseSpec()))[0] is expected


@looped
async def test_a_lease_that_cannot_be_read_is_an_error():
    """Neither silence nor a refusal may look like a missing Lease."""
    server = LeaseServer()
    async with serving(server.handle) as url, Client(config_of(url)) as client:
        for failing in (status_response(403, "Forbidden"), web.Response(status=404, text="no such page")):
            server.fail_next = failing
            with pytest.raises(LeaseError, match="cannot read Lease ns/fleet"):
                await client.lease("ns", "fleet").read()
        server.fail_next = json_response({"metadata": {}})
        with pytest.raises(LeaseError, match="not a Lease"):
            await client.lease("ns", "fleet").read()


@pytest.mark.parametrize("moment_ms", [0, 1, 999, 1000, 1_767_225_600_000, 1_767_225_600_999])
def test_timestamps_there_and_back(moment_ms):
    assert unix_ms(micro_text(moment_ms)) == moment_ms
    assert unix_ms(seconds_text(moment_ms)) == moment_ms // 1000 * 1000


def test_timestamps_look_as_upstream_writes_them():
    assert seconds_text(1_767_225_600_999) == "2026-01-01T00:00:00Z"
    assert micro_text(1_767_225_600_050) == "2026-01-01T00:00:00.050000Z"
    assert unix_ms(None) == unix_ms("") == 0
    assert unix_ms("2026-01-01T02:00:00.5+02:00") == 1_767_225_600_500
    for wrong in ("yesterday", "2026-01-01T00:00:00"):
        with pytest.raises(ValueError):
            unix_ms(wrong)
