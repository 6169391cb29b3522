"""KubeApi against the embedded API server: what a turn's steps become on the wire, and what comes back."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
import pytest

from oarlock.broker.budget import BudgetLimits
from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.access.credentials import ConfigError
from oarlock.cluster.access.tls import TlsOptions
from oarlock.cluster.answer import NO_ANSWER, NOT_SENT, PAST_DEADLINE, Answer
from oarlock.cluster.client import Client
from oarlock.cluster.listing import ListError
from oarlock.cluster.outcome import Outcome, of_change, of_create, of_delete
from oarlock.cluster.resources import PODS, REPLICASETS, Resource
from oarlock.controllers.flavour import REPLICASET
from oarlock.controllers.objects import wire
from oarlock.controllers.objects.model import Condition, ReplicaSet, ReplicaSetStatus, controller_of
from oarlock.controllers.objects.selector import Requirement, label_selector
from oarlock.controllers.ownership import claim as claims
from oarlock.controllers.pods import events
from oarlock.controllers.pods.slots import slots_of
from oarlock.controllers.registry import CONTROLLERS
from oarlock.sandbox.apiserver.http.faults import Action, Fault
from oarlock.sandbox.apiserver.server import EmbeddedCluster
from oarlock.sandbox.apiserver.server import Settings as ServerSettings
from oarlock.workers.budget.limiter import current_lane, fleet_limiter
from oarlock.workers.counters.table import Row, own_row
from oarlock.workers.process.clock import SystemClock
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.engine import api as api_module
from oarlock.workers.turn.engine.api import KubeApi
from oarlock.workers.turn.steps import Grant, Write

CONTROLLER = CONTROLLERS["replicaset"]
WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    },
}


class Server:
    """An API server in a thread of its own."""

    def __init__(self, **settings: Any) -> None:
        self._io = IoLoop()
        self._cluster = EmbeddedCluster(ServerSettings(faults_enabled=True, **settings))
        self.url = self._io.run(self._cluster.start())

    def _inside(self, call: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return call()

        return self._io.run(run())

    def inject(self, fault: Fault) -> None:
        self._inside(lambda: self._cluster.requests.inject(fault))

    def objects(self, kind: str, namespace: str = "default") -> dict[str, Any]:
        """Name -> object, as stored."""
        listed = self._inside(lambda: [orjson.dumps(each) for each in self._cluster.store.list(kind, namespace)])
        return {each["metadata"]["name"]: each for each in map(orjson.loads, listed)}

    def create(self, resource: Resource, obj: dict[str, Any]) -> None:
        """By another client."""

        async def post() -> Answer:
            async with Client(ClusterConfig(self.url)) as client:
                return await client.create(resource, obj["metadata"]["namespace"], orjson.dumps(obj))

        answer = self._io.run(post())
        assert answer.code == 201, answer.message

    def owner(self) -> tuple[str, ReplicaSet]:
        """default/web as a turn would have it: its resourceVersion, and the projection."""
        return wire.replicaset_from_json(orjson.dumps(self.objects("ReplicaSet")["web"]))

    def stop(self) -> None:
        self._io.run(self._cluster.stop())
        self._io.close()


@pytest.fixture
def server() -> Iterator[Server]:
    """With a ReplicaSet of three, and nobody to look after it."""
    made = Server()
    made.create(REPLICASETS, WEB)
    yield made
    made.stop()


@pytest.fixture
def connect() -> Iterator[Callable[..., KubeApi]]:
    """``connect(server, kube_api_qps=10.0)``."""
    made: list[KubeApi] = []

    def make(server: Server, **settings: Any) -> KubeApi:
        made.append(KubeApi(ClusterConfig(server.url), Settings(**{"kube_api_qps": 0.0, **settings})))
        return made[-1]

    yield make
    for api in made:
        api.close()


@pytest.fixture
def api(server: Server, connect: Callable[..., KubeApi]) -> KubeApi:
    return connect(server)


def bare_pod(name: str, namespace: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def soon_ms() -> int:
    """A deadline that is not reached."""
    return SystemClock().mono_ms() + 4_500


def send(api: KubeApi, *writes: Write, prepaid: bool = True) -> list[Answer]:
    return api.send(writes, soon_ms(), prepaid).result(10)


def creates(owner: ReplicaSet, count: int) -> list[Write]:
    bodies, slots = CONTROLLER.pod_bodies(owner), slots_of(owner.name, owner.uid)
    return [Write("create", "pods", "default", name, bodies.body(name)) for name in map(slots.name, range(count))]


def delete(name: str, uid: str, rv: str) -> Write:
    return Write("delete", "pods", "default", name, uid=uid, rv=rv)


def test_create(server: Server, api: KubeApi) -> None:
    """The name is the one announced; a second sending meets it; the read tells that it is ours."""
    _, owner = server.owner()
    (write,) = creates(owner, 1)
    (done,) = send(api, write)
    assert of_create(done) is Outcome.DONE
    pod = server.objects("Pod")[write.name]
    assert (pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]) == (done.uid, done.resource_version)
    assert pod["metadata"]["generateName"] == "web-"
    (again,) = send(api, write)
    assert of_create(again) is Outcome.EXISTS
    (look,) = api.read("pods", "default", (write.name,)).result(10)
    rv, found = wire.pod_from_json(look.body)
    ref = controller_of(found)
    assert ref is not None
    assert (rv, ref.uid) == (done.resource_version, owner.uid)


def test_deletes_mean_what_they_name(server: Server, api: KubeApi) -> None:
    _, owner = server.owner()
    (write,) = creates(owner, 1)
    (made,) = send(api, write)
    refused = send(api, delete(write.name, "another", made.resource_version), delete(write.name, made.uid, "1"))
    assert [of_delete(answer) for answer in refused] == [Outcome.CONFLICT] * 2
    assert write.name in server.objects("Pod")
    (done,) = send(api, delete(write.name, made.uid, made.resource_version))
    assert of_delete(done) is Outcome.DONE
    assert server.objects("Pod") == {}, "one that no node has ends at once"
    (gone,) = send(api, delete(write.name, made.uid, made.resource_version))
    assert of_delete(gone) is Outcome.GONE


def test_adoption_and_release(server: Server, api: KubeApi) -> None:
    _, owner = server.owner()
    server.create(PODS, bare_pod("p", "default"))
    uid = server.objects("Pod")["p"]["metadata"]["uid"]

    def patch(body: bytes) -> Outcome:
        (answer,) = send(api, Write("patch", "pods", "default", "p", body, uid), prepaid=False)
        return of_change(answer)

    assert patch(claims.adopt_patch(owner, REPLICASET, "another")) is Outcome.REFUSED
    assert patch(claims.adopt_patch(owner, REPLICASET, uid)) is Outcome.DONE
    (reference,) = server.objects("Pod")["p"]["metadata"]["ownerReferences"]
    assert (reference["uid"], reference["controller"], reference["blockOwnerDeletion"]) == (owner.uid, True, True)
    assert patch(claims.release_patch(uid, [owner.uid])) is Outcome.DONE
    assert not server.objects("Pod")["p"]["metadata"].get("ownerReferences")


def test_status(server: Server, api: KubeApi) -> None:
    """On the version it was computed from, and the spec is left alone."""
    rv, owner = server.owner()
    failure = Condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota", 1_750_000_000_000)
    body = CONTROLLER.status_patch(owner, ReplicaSetStatus(2, 2, 1, 1, 0, 1, (failure,)), rv)
    write = Write("status", "replicasets", "default", "web", body)
    (done,) = send(api, write, prepaid=False)
    assert of_change(done) is Outcome.DONE
    new_rv, seen = server.owner()
    assert (new_rv, seen.status) == (done.resource_version, ReplicaSetStatus(2, 2, 1, 1, 0, 1, (failure,)))
    assert (seen.replicas, seen.generation) == (3, owner.generation)
    (stale,) = send(api, write, prepaid=False)
    assert of_change(stale) is Outcome.CONFLICT


def test_a_condition_that_goes(server: Server, api: KubeApi) -> None:
    """The list is replaced as a whole: what another wrote beside it stays, because it is written again."""
    failure = Condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota", 1_750_000_000_000)
    other = Condition("StatusUpdate", "True", "E2E", "set from a test", 1_750_000_000_000)
    for conditions in ((failure, other), (other,), ()):
        rv, owner = server.owner()
        body = CONTROLLER.status_patch(owner, ReplicaSetStatus(conditions=conditions), rv)
        send(api, Write("status", "replicasets", "default", "web", body), prepaid=False)
        assert server.owner()[1].status.conditions == conditions


def test_read(server: Server, api: KubeApi) -> None:
    """Several at the same time, answers in order."""
    _, owner = server.owner()
    writes = creates(owner, 2)
    send(api, *writes)
    answers = api.read("pods", "default", (writes[1].name, "absent", writes[0].name)).result(10)
    assert [answer.code for answer in answers] == [200, 404, 200]
    assert [wire.pod_from_json(answers[at].body)[1].name for at in (0, 2)] == [writes[1].name, writes[0].name]
    (live,) = api.read("replicasets", "default", ("web",)).result(10)
    assert wire.replicaset_from_json(live.body)[1] == owner


def test_many_reads_have_as_many_connections_as_writes(
    server: Server, api: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = api._settings.writes_in_flight
    get, under_way, counts = api._client.get, [], []

    async def counted(resource: Resource, namespace: str, name: str) -> Answer:
        under_way.append(name)
        counts.append(len(under_way))
        try:
            return await get(resource, namespace, name)
        finally:
            under_way.remove(name)

    monkeypatch.setattr(api._client, "get", counted)
    answers = api.read("pods", "default", tuple(f"absent-{number}" for number in range(3 * most))).result(30)
    assert (len(answers), {answer.code for answer in answers}, max(counts)) == (3 * most, {404}, most)


def test_list_live(server: Server, api: KubeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """One namespace, all pages of one moment, with the resourceVersion of the list."""
    _, owner = server.owner()
    writes = creates(owner, 7)
    made = send(api, *writes)
    server.create(PODS, bare_pod("elsewhere", "kube-system"))
    pages = api._client.list_pages
    monkeypatch.setattr(api._client, "list_pages", lambda *args, **given: pages(*args, **given, limit=3))
    listed = api.list_live("pods", "default").result(10)
    found = [wire.pod_from_json(raw) for raw in listed.items]
    assert {pod.name: rv for rv, pod in found} == {
        write.name: answer.resource_version for write, answer in zip(writes, made, strict=True)
    }
    assert int(listed.rv) >= max(int(answer.resource_version) for answer in made)
    assert api.list_live("replicasets", "kube-system").result(10).items == []


def test_list_live_of_what_a_selector_selects(server: Server, api: KubeApi) -> None:
    _, owner = server.owner()
    made = creates(owner, 5)
    send(api, *made)
    server.create(PODS, bare_pod("other", "default"))
    assert owner.selector is not None
    for selector, names in (
        (owner.selector, {write.name for write in made}),
        (label_selector({}, (Requirement("app", "NotIn", ("web", "api")),)), {"other"}),
        (label_selector({}, (Requirement("app", "DoesNotExist"),)), {"other"}),
    ):
        listed = api.list_live("pods", "default", selector).result(10)
        assert {wire.pod_from_json(raw)[1].name for raw in listed.items} == names


def test_a_burst_goes_out_at_the_same_time(server: Server, api: KubeApi) -> None:
    """Answers come in the order of the writes, whatever order they were answered in."""
    _, owner = server.owner()
    writes = creates(owner, 40)
    server.inject(Fault(Action.DELAY_BEFORE, delay_ms=(200, 300)))
    begun_s = time.monotonic()
    answers = send(api, *writes)
    assert time.monotonic() - begun_s < 40 * 0.2, "one after the other would take longer"
    pods = server.objects("Pod")
    assert [answer.uid for answer in answers] == [pods[write.name]["metadata"]["uid"] for write in writes]


def test_events_are_held_back_for_a_moment_after_each_write(
    server: Server, api: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next wave of the turn is to come."""
    _, owner = server.owner()
    monkeypatch.setattr(api_module, "BUSY_S", 60.0)
    assert not api._busy()
    send(api, *creates(owner, 1))
    assert api._busy()
    monkeypatch.setattr(api_module, "BUSY_S", 0.0)
    assert not api._busy(), "nothing is under way"


def test_nothing_is_sent_after_the_deadline(server: Server, api: KubeApi) -> None:
    """On CLOCK_BOOTTIME."""
    _, owner = server.owner()
    (late,) = api.send(tuple(creates(owner, 1)), SystemClock().mono_ms() - 1, True).result(10)
    assert late == PAST_DEADLINE
    assert server.objects("Pod") == {}


def test_committed_and_unanswered(server: Server, api: KubeApi) -> None:
    """The answer is lost; nobody sends it a second time but the turn."""
    _, owner = server.owner()
    server.inject(Fault(Action.DROP_ANSWER, verbs=("create", "delete", "patch"), count_max=4))
    (write,) = creates(owner, 1)
    (unknown,) = send(api, write)
    assert (unknown.code, of_create(unknown)) == (NO_ANSWER, Outcome.UNKNOWN)
    pod = server.objects("Pod")[write.name]["metadata"]
    (unknown,) = send(api, delete(write.name, pod["uid"], pod["resourceVersion"]))
    assert of_delete(unknown) is Outcome.UNKNOWN
    assert server.objects("Pod") == {}
    rv, owner = server.owner()
    body = CONTROLLER.status_patch(owner, ReplicaSetStatus(replicas=1, observed_generation=1), rv)
    (unknown,) = send(api, Write("status", "replicasets", "default", "web", body), prepaid=False)
    assert of_change(unknown) is Outcome.UNKNOWN
    assert server.owner()[1].status.replicas == 1
    (answered,) = send(api, creates(owner, 2)[1])
    assert of_create(answered) is Outcome.UNKNOWN, "the fourth fault: none was used up by a repetition"


def test_reserve(server: Server, connect: Callable[..., KubeApi]) -> None:
    """What is there now; with too few, how long until the next ones."""
    api = connect(server, kube_api_qps=0.1, kube_api_burst=5)
    assert api.reserve(3) == Grant(3, 0)
    grant = api.reserve(4)
    assert grant.granted == 2
    assert 5_000 < grant.wait_ms <= 10_001, "one more, at one in ten seconds"
    none = api.reserve(500)
    assert none.granted == 0
    assert 5_000 < none.wait_ms <= 10_001


def test_no_limit(server: Server, api: KubeApi) -> None:
    assert api.reserve(500) == Grant(500, 0)


def test_what_takes_a_token(server: Server, connect: Callable[..., KubeApi]) -> None:
    """Reserved writes have theirs; the others and reads take one each; probes and events take none of ours."""
    api = connect(server, kube_api_qps=0.01, kube_api_burst=10)
    _, owner = server.owner()
    assert api.reserve(2) == Grant(2, 0)
    send(api, *creates(owner, 2))
    assert api.probe()
    api.tell(owner, "1", REPLICASET, [events.created("x")])
    rv, owner = server.owner()
    body = CONTROLLER.status_patch(owner, ReplicaSetStatus(replicas=2), rv)
    send(api, Write("status", "replicasets", "default", "web", body), prepaid=False)
    api.read("pods", "default", ("a", "b")).result(10)
    assert api.reserve(10).granted == 10 - 2 - 1 - 2


@pytest.fixture
def budgeted(server: Server) -> Iterator[tuple[KubeApi, Row]]:
    """Under a fleet's budget, with shares of 20 a second for ReplicaSets and two requests under way."""
    row, clock = own_row(), SystemClock()
    cells = row.layout.budget
    row.ints[cells.lanes["replicaset"].rate], row.ints[cells.flights] = 20_000, 2
    limits = BudgetLimits(100_000, 10_000, 2)
    make = partial(fleet_limiter, row, limits, 60_000, clock.mono_ms)
    api = KubeApi(ClusterConfig(server.url), Settings(fleet_api_qps=100.0, fleet_api_in_flight=2), budget=make)
    row.ints[cells.until_ms] = clock.mono_ms() + 60_000
    token = current_lane.set("replicaset")
    yield api, row
    current_lane.reset(token)
    api.close()


def test_a_fleet_s_budget_lends_tokens_to_turns(server: Server, budgeted: tuple[KubeApi, Row]) -> None:
    api, row = budgeted
    promised = api.promise(500, 10.0)
    assert promised is not None
    assert promised.result(10) == Grant(8, 1), "a few times as many as may be under way"
    _, owner = server.owner()
    assert [each.code for each in send(api, *creates(owner, 8))] == [201] * 8
    api.read("pods", "default", ("a",)).result(10)
    lane = row.layout.budget.lanes["replicaset"]
    assert row.ints[lane.taken] == 9
    assert row.ints[lane.waited] > 0, "eight tokens at 20 a second were not there at once"
    assert row.ints[row.layout.budget.wanted] > 0


def test_what_was_promised_and_is_not_sent_is_promised_to_others(budgeted: tuple[KubeApi, Row]) -> None:
    api, _ = budgeted

    def promised() -> int:
        grant = api.promise(8, 0.0)
        assert grant is not None
        return grant.result(10).granted

    while promised() == 8:
        pass
    assert promised() == 0
    api.redeem(8)
    assert promised() == 8
    api.redeem(0)
    assert promised() == 0


def test_a_429_is_noted_for_the_whole_fleet(server: Server, budgeted: tuple[KubeApi, Row]) -> None:
    api, row = budgeted
    server.inject(Fault(Action.REFUSE, verbs=("get",), count_max=1, retry_after_s=2, duration_s=60.0))
    api.read("pods", "default", ("a",)).result(10)
    cells = row.layout.budget
    assert row.ints[cells.refused] == 1
    assert row.ints[cells.told_until_ms] > SystemClock().mono_ms()
    none = api.promise(1, 0.05)
    assert none is not None
    assert none.result(10) == Grant(0, 1_000), "until then nothing is sent"
    _, owner = server.owner()
    soon_ms = SystemClock().mono_ms() + 100
    assert api.send(creates(owner, 1), soon_ms, True).result(10) == [PAST_DEADLINE]


def test_events(server: Server) -> None:
    """Told in the background, about the owner as the turn read it, and sent before the end."""
    api = KubeApi(ClusterConfig(server.url), Settings(kube_api_qps=0.0))
    rv, owner = server.owner()
    api.tell(
        owner, rv, REPLICASET, [events.created("web-x"), events.create_failed("exceeded quota"), events.deleted("y")]
    )
    api.close()
    told = sorted(server.objects("Event").values(), key=lambda each: each["message"])
    assert [(each["type"], each["reason"], each["message"]) for each in told] == [
        ("Normal", "SuccessfulCreate", "Created pod: web-x"),
        ("Normal", "SuccessfulDelete", "Deleted pod: y"),
        ("Warning", "FailedCreate", "Error creating: exceeded quota"),
    ]
    about = told[0]["involvedObject"]
    assert (about["kind"], about["name"], about["uid"], about["resourceVersion"]) == (
        "ReplicaSet",
        "web",
        owner.uid,
        rv,
    )
    assert told[0]["source"]["component"] == "replicaset-controller"


def test_probe(connect: Callable[..., KubeApi]) -> None:
    server = Server()
    api = connect(server)
    assert api.probe() is True
    server.stop()
    assert api.probe() is False
    (write,) = (Write("create", "pods", "default", "p", b"{}"),)
    (unsent,) = send(api, write)
    assert unsent.code == NOT_SENT


def test_credentials_that_are_refused(connect: Callable[..., KubeApi]) -> None:
    """An answer like any other for writes and reads; a list has nothing to give and says why."""
    server = Server(token="secret")
    api = connect(server)
    assert api.probe() is False
    assert [answer.code for answer in api.read("pods", "default", ("p",)).result(10)] == [401]
    (refused,) = send(api, Write("create", "pods", "default", "p", b"{}"))
    assert of_create(refused) is Outcome.REFUSED
    with pytest.raises(ListError, match="cannot list pods: Unauthorized"):
        api.list_live("pods", "default").result(10)
    server.stop()


def io_threads() -> int:
    return sum(thread.name == "io" for thread in threading.enumerate())


def test_closing_leaves_nothing_open(server: Server) -> None:
    """Neither the client of the turns nor that of the events, nor their thread."""
    gc.collect()  # what others left
    threads = io_threads()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        api = KubeApi(ClusterConfig(server.url), Settings(kube_api_qps=0.0))
        _, owner = server.owner()
        send(api, *creates(owner, 1))
        api.tell(owner, "1", REPLICASET, [events.created("x")])
        api.close()
        del api
        gc.collect()
    assert [str(each.message) for each in caught] == []
    assert io_threads() == threads


def test_unusable_credentials_leave_no_thread(server: Server) -> None:
    threads = io_threads()
    config = replace(ClusterConfig("https://127.0.0.1:1"), tls=TlsOptions(ca_pem=b"no certificate"))
    with pytest.raises(ConfigError):
        KubeApi(config, Settings())
    assert io_threads() == threads


def test_a_verb_there_is_not(api: KubeApi) -> None:
    with pytest.raises(AssertionError, match="no such verb: put"):
        send(api, Write("put", "pods", "default", "p"))
