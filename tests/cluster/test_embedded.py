"""The client against the embedded API server: both ends of the fleet's cluster traffic, over real HTTP."""

import asyncio
from contextlib import aclosing, asynccontextmanager

import orjson
import pytest

from oarlock.cluster.access.config import load
from oarlock.cluster.answer import NO_ANSWER
from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.event_correlator import COMBINED_PREFIX, Note, ObjectRef
from oarlock.cluster.events import EventRecorder
from oarlock.cluster.lease import LeaseSpec, Swap
from oarlock.cluster.listing import list_all
from oarlock.cluster.outcome import Outcome, delay_s, of_apply, of_change, of_create, of_delete, of_delete_conflict
from oarlock.cluster.resources import EVENTS, NAMESPACES, NODES, PODS, REPLICASETS, Resource
from oarlock.cluster.watch import Broken, Expired
from oarlock.sandbox.apiserver.http.faults import Action, Fault
from oarlock.sandbox.apiserver.http.watch import Pace
from oarlock.sandbox.apiserver.kubeconfig import write_kubeconfig
from oarlock.sandbox.apiserver.server import EmbeddedCluster, Settings
from tests.cluster.client_helpers import FakeTime, config_of, looped, one_by_one

SERVICES = Resource("v1", "services", "Service")


@asynccontextmanager
async def embedded(**settings):
    async with (
        EmbeddedCluster(Settings(faults_enabled=True, **settings)) as server,
        Client(config_of(server.url), role="test") as client,
    ):
        yield server, client


def pod_json(name, owner_uid="", **metadata):
    if owner_uid:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner_uid}
        metadata["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    return orjson.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "web"}, **metadata},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    )


def replicaset_json(replicas=1):
    return orjson.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        }
    )


@looped
async def test_lists_in_pages_are_of_one_moment():
    """A pod made between two pages is not in the list, but comes with the watch from the list's position."""
    async with embedded() as (_, client):
        for n in range(7):
            assert (await client.create(PODS, "default", pod_json(f"p{n}"))).code == 201
        names, rv = [], ""
        async for page in client.list_pages(PODS, limit=3):
            if page.first:
                await client.create(PODS, "default", pod_json("p9"))
            names += [orjson.loads(item)["metadata"]["name"] for item in page.items]
            rv = page.rv
        assert names == [f"p{n}" for n in range(7)]
        async with aclosing(one_by_one(client.watch_batches(PODS, rv))) as events:
            event = await anext(events)
            assert (event.type, orjson.loads(event.object)["metadata"]["name"]) == ("ADDED", "p9")


@looped
async def test_a_list_begun_before_the_history_was_cut_starts_afresh():
    async with embedded() as (server, client):
        for n in range(4):
            await client.create(PODS, "default", pod_json(f"p{n}"))
        firsts = []
        async for page in client.list_pages(PODS, limit=2):
            firsts.append(page.first)
            if len(firsts) == 1:
                await client.create(PODS, "default", pod_json("p9"))
                server.requests.inject(Fault(Action.CUT_HISTORY))
        assert firsts[0] is True
        assert firsts.count(True) == 2, "the second page was refused, so there is a new first"


@looped
async def test_a_watch_follows_what_happens():
    async with embedded(pace=Pace(quiet_s=0.2, progress_s=0.2)) as (_, client):
        rv, _ = await list_all(client.list_pages(PODS))
        created = await client.create(PODS, "default", pod_json("p"))
        await client.patch(PODS, "default", "p", b'{"metadata":{"labels":{"a":"b"}}}')
        await client.delete(PODS, "default", "p", grace_s=0)
        seen = []
        async with aclosing(one_by_one(client.watch_batches(PODS, rv))) as events:
            async for event in events:
                seen.append(event)
                if event.type == "BOOKMARK":
                    break
        # A delete without grace marks the pod before it removes it, as upstream does.
        assert [event.type for event in seen] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED", "BOOKMARK"]
        assert seen[0].rv == created.resource_version
        versions = [int(event.rv) for event in seen]
        assert versions == sorted(versions)


@looped
async def test_a_watch_from_before_the_kept_history_is_expired():
    async with embedded() as (server, client):
        rv, _ = await list_all(client.list_pages(PODS))
        await client.create(PODS, "default", pod_json("p"))
        server.requests.inject(Fault(Action.CUT_HISTORY))
        with pytest.raises(Expired):
            async for _ in client.watch_batches(PODS, rv):
                pass


@looped
async def test_creating_a_name_twice():
    async with embedded() as (_, client):
        first = await client.create(PODS, "default", pod_json("p", generateName="p-"))
        assert of_create(first) is Outcome.DONE
        assert first.uid
        again = await client.create(PODS, "default", pod_json("p", generateName="p-"))
        assert of_create(again) is Outcome.EXISTS
        look = await client.get(PODS, "default", "p")
        assert (look.uid, look.resource_version) == (first.uid, first.resource_version)


@looped
async def test_deletes_mean_what_they_name():
    async with embedded() as (_, client):
        created = await client.create(PODS, "default", pod_json("p"))
        wrong = await client.delete(PODS, "default", "p", uid="another")
        assert of_delete(wrong) is Outcome.CONFLICT
        look = await client.get(PODS, "default", "p")
        assert of_delete_conflict(look, "another") is Outcome.GONE
        await client.patch(PODS, "default", "p", b'{"metadata":{"labels":{"a":"b"}}}')
        version = created.resource_version
        stale = await client.delete(PODS, "default", "p", uid=created.uid, resource_version=version)
        assert of_delete(stale) is Outcome.CONFLICT
        look = await client.get(PODS, "default", "p")
        assert of_delete_conflict(look, created.uid) is Outcome.CHANGED
        version = look.resource_version
        done = await client.delete(PODS, "default", "p", uid=created.uid, resource_version=version, grace_s=0)
        assert of_delete(done) is Outcome.DONE
        assert of_delete(await client.delete(PODS, "default", "p", uid=created.uid)) is Outcome.GONE


@looped
async def test_adoption_and_release():
    """Both carry the UID they mean; the release takes out one reference and leaves the others."""
    async with embedded() as (_, client):
        owner = (await client.create(REPLICASETS, "default", replicaset_json())).uid
        pod = await client.create(PODS, "default", pod_json("p"))
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner}
        controller = {**reference, "controller": True, "blockOwnerDeletion": True}

        async def patch(uid, references):
            body = orjson.dumps({"metadata": {"uid": uid, "ownerReferences": references}})
            return await client.patch(PODS, "default", "p", body, PatchType.STRATEGIC)

        assert not (await patch("another", [controller])).ok
        adopted = await patch(pod.uid, [controller])
        assert of_change(adopted) is Outcome.DONE
        assert adopted.object()["metadata"]["ownerReferences"] == [controller]
        rival = await patch(pod.uid, [{**controller, "name": "rival", "uid": "other"}])
        assert of_change(rival) is Outcome.REFUSED, "a second controller"
        released = await patch(pod.uid, [{"$patch": "delete", "uid": owner}])
        assert of_change(released) is Outcome.DONE
        assert not released.object()["metadata"].get("ownerReferences")
        await client.delete(PODS, "default", "p", grace_s=0)
        assert of_change(await patch(pod.uid, [controller])) is Outcome.GONE


@looped
async def test_a_status_is_written_only_on_the_version_it_was_computed_from():
    async with embedded() as (_, client):
        seen = (await client.create(REPLICASETS, "default", replicaset_json())).object()
        seen["status"] = {"replicas": 1, "observedGeneration": 1}
        first = await client.put(REPLICASETS, "default", "web", orjson.dumps(seen), subresource="status")
        assert of_change(first) is Outcome.DONE
        assert first.object()["status"]["replicas"] == 1
        seen["status"]["replicas"] = 0
        stale = await client.put(REPLICASETS, "default", "web", orjson.dumps(seen), subresource="status")
        assert of_change(stale) is Outcome.CONFLICT
        assert (await client.get(REPLICASETS, "default", "web")).object()["status"]["replicas"] == 1


@looped
async def test_a_lease_has_one_winner():
    """Twenty who all read the same state: one wins each round."""
    async with embedded() as (_, client):
        cell = client.lease("kube-system", "fleet")
        before = await cell.read()
        assert before is None
        for round_number in range(3):
            specs = [
                LeaseSpec(holder=f"h{n}", duration_s=5, renewed_ms=1000, annotations={"round": str(round_number)})
                for n in range(20)
            ]
            swaps = await asyncio.gather(*(cell.swap(before, spec) for spec in specs))
            results = [result for result, _, _ in swaps]
            assert (results.count(Swap.WON), results.count(Swap.LOST)) == (1, 19)
            before = await cell.read()
            assert before is not None
            assert before.spec == specs[results.index(Swap.WON)]


@looped
async def test_a_namespace_that_is_going_takes_no_pods():
    async with embedded() as (_, client):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        assert (await client.create(NAMESPACES, "", orjson.dumps(namespace))).code == 201
        held = await client.create(PODS, "team", pod_json("p", finalizers=["example.com/hold"]))
        assert held.ok
        assert (await client.delete(NAMESPACES, "", "team")).ok
        refused = await client.create(PODS, "team", pod_json("q"))
        assert of_create(refused) is Outcome.NAMESPACE_TERMINATING
        absent = await client.create(PODS, "nowhere", pod_json("q"))
        assert of_create(absent) is Outcome.REFUSED


@looped
async def test_committed_and_unanswered():
    """The write is unknown, and writing the same again settles it."""
    async with embedded() as (server, client):
        server.requests.inject(Fault(Action.DROP_ANSWER, verbs=("create",), count_max=1))
        lost = await client.create(PODS, "default", pod_json("p"))
        assert (lost.code, of_create(lost)) == (NO_ANSWER, Outcome.UNKNOWN)
        again = await client.create(PODS, "default", pod_json("p"))
        assert of_create(again) is Outcome.EXISTS
        uid = (await client.get(PODS, "default", "p")).uid
        server.requests.inject(Fault(Action.DROP_ANSWER, verbs=("delete",), count_max=1))
        lost = await client.delete(PODS, "default", "p", uid=uid, grace_s=0)
        assert of_delete(lost) is Outcome.UNKNOWN
        assert of_delete(await client.delete(PODS, "default", "p", uid=uid)) is Outcome.GONE


@looped
async def test_throttling_and_failures():
    async with embedded() as (server, client):
        server.requests.inject(Fault(Action.REFUSE, count_max=1, retry_after_s=3))
        refused = await client.create(PODS, "default", pod_json("p"))
        assert (of_create(refused), delay_s(refused)) == (Outcome.THROTTLED, 3.0)
        server.requests.inject(Fault(Action.FAIL_AFTER, count_max=1))
        failed = await client.create(PODS, "default", pod_json("p"))
        assert of_create(failed) is Outcome.UNKNOWN
        assert of_create(await client.create(PODS, "default", pod_json("p"))) is Outcome.EXISTS


@looped
async def test_many_writes_at_once():
    async with embedded() as (_, client):
        answers = await asyncio.gather(*(client.create(PODS, "default", pod_json(f"p{n}")) for n in range(300)))
        assert {of_create(answer) for answer in answers} == {Outcome.DONE}
        _, items = await list_all(client.list_pages(PODS, limit=100))
        assert len(items) == 300


@looped
async def test_events_are_kept_and_combined():
    async with embedded() as (_, client):
        about = ObjectRef("apps/v1", "ReplicaSet", "default", "web", "u1")
        recorder = EventRecorder(client, sleep=FakeTime().sleep)
        recorder.start()
        for n in range(14):
            recorder.tell(Note(about, "Normal", "SuccessfulCreate", f"Created pod: web-{n}", "replicaset-controller"))
        await recorder.close(flush_s=5)
        assert (recorder.sent, recorder.failed, recorder.dropped) == (14, 0, 0)
        _, items = await list_all(
            client.list_pages(EVENTS, namespace="default", field_selector="involvedObject.uid=u1")
        )
        stored = [orjson.loads(item) for item in items]
        assert len(stored) == 10
        [combined] = [event for event in stored if event["message"].startswith(COMBINED_PREFIX)]
        assert combined["count"] == 5


@looped
async def test_the_kubeconfig_it_writes_is_one_we_read(tmp_path):
    write = tmp_path / "kubeconfig"
    async with embedded(token="s3cret") as (server, stranger):
        assert (await stranger.get(NODES, "", "n")).code == 401
        with pytest.raises(Broken, match=r"401|nauthorized"):
            async for _ in stranger.watch_batches(PODS, "1"):
                pass
        write_kubeconfig(write, server.url, token="s3cret")
        async with Client(load(write)) as client:
            assert (await client.get(NODES, "", "n")).code == 404
            assert (await client.probe()).ok


def service_json(**metadata):
    spec = {"selector": {"app": metadata.pop("selects", "web")}, "ports": [{"port": 80}]}
    meta = {"name": "web", **metadata}
    return orjson.dumps({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})


@looped
async def test_an_apply_creates_changes_and_is_refused():
    async with embedded() as (_, client):
        made = await client.apply(SERVICES, "default", "web", service_json(), manager="one")
        assert (made.code, of_apply(made)) == (201, Outcome.DONE)
        (entry,) = made.object()["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"]) == ("one", "Apply")
        again = await client.apply(SERVICES, "default", "web", service_json(), manager="one")
        assert (again.code, again.resource_version) == (200, made.resource_version)
        other = service_json(selects="other")
        assert of_apply(await client.apply(SERVICES, "default", "web", other, manager="two")) is Outcome.CONFLICT
        forced = await client.apply(SERVICES, "default", "web", other, manager="two", force=True)
        assert of_apply(forced) is Outcome.DONE
        stale = service_json(uid=made.uid, resourceVersion=made.resource_version)
        late = await client.apply(SERVICES, "default", "web", stale, manager="one", force=True)
        assert of_apply(late) is Outcome.CONFLICT


@looped
async def test_an_apply_with_a_uid_creates_nothing():
    async with embedded() as (_, client):
        gone = await client.apply(SERVICES, "default", "web", service_json(uid="u1"), manager="one", force=True)
        assert of_apply(gone) is Outcome.CONFLICT
        assert (await client.get(SERVICES, "default", "web")).code == 404


@looped
async def test_an_apply_into_no_namespace_is_refused():
    async with embedded() as (_, client):
        refused = await client.apply(SERVICES, "nowhere", "web", service_json(), manager="one")
        assert of_apply(refused) is Outcome.REFUSED
