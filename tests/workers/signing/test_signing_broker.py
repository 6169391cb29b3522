"""A worker and an ingestor behind signatures, and somebody who may write to Redis, but has no key."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import pytest

from oarlock.broker.memory import changes
from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.memory.state import Stored
from oarlock.broker.values.claims import Batch, Claim, ClaimLimits, LoadSpec
from oarlock.broker.values.events import Event
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Entry, Finish, Verdict
from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.deflated import deflated, inflated
from oarlock.controllers.objects.model import Pod, ReplicaSet
from oarlock.controllers.pods.classes import class_of
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.controllers.scheduling.model import Node
from oarlock.workers.process.settings import Settings
from oarlock.workers.signing.object_check import REMEMBERED_MAX, key_in
from oarlock.workers.signing.refusals import SAY_EVERY_MS, ObjectRefused, Refusals, decoded
from oarlock.workers.signing.signature import Key, Signer
from oarlock.workers.signing.signing_broker import SigningBroker
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.engine.turn_engine import load_spec
from oarlock.workers.turn.steps import TurnRefused
from tests.controllers.builders import THEIRS, pod, rs
from tests.manual_clock import ManualClock
from tests.workers.turn.quiet_api import QuietApi
from tests.workers.turn.turns import through

RING = (Key("0a0a", bytes(range(32))),)
SCOPE = "oarlock oarlock:1:{0}:"
QUEUE, KEY = "replicaset", "default/web"
SPEC = load_spec(CONTROLLERS[QUEUE])


class World:
    """The cache of one epoch: an owner with pods, written by an ingestor that signs."""

    def __init__(self, pods: int = 3) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock.wall_ms)
        self.store.bootstrap(1)
        self.plain = MemoryBroker(self.store, 1)
        self.refusals = Refusals(self.clock.mono_ms)
        self.broker = SigningBroker(self.plain, Signer(RING, SCOPE), self.refusals)
        self.owner, self.pods = rs(pods), [pod(f"web-{n}") for n in range(pods)]
        self.nonces = iter(range(1_000_000))
        blob, apart = codec.encode_apart(self.owner), codec.template_apart(self.owner)
        owner = Event(KEY, "2", self.owner.uid, blob, (), (f"{QUEUE}:{KEY}",), apart=apart)
        for resource, events in (
            ("replicasets", [owner]),
            ("pods", [self.event(each, 3) for each in self.pods]),
            ("nodes", [Event("n1", "4", "node-1", codec.encode(Node("n1", "node-1", {}, ())), ("mirror",), ())]),
            ("controllerrevisions", []),
        ):
            self.broker.stage(resource, f"g-{resource}", events)
            self.broker.commit_list(resource, f"g-{resource}", "10")
        self.broker.republish()
        self.broker.open([])
        self.store.state.queue(QUEUE).stream.clear()
        self.store.state.queue(QUEUE).state.clear()
        self.broker.register("w", "s", [QUEUE, "daemonset"])

    def event(self, each: Pod, rv: int) -> Event:
        return Event(each.key, str(rv), each.uid, codec.encode(each), (f"owner={self.owner.uid}",), ())

    def stored(self, resource: str = "pods") -> dict[str, Stored]:
        """What lies in Redis: the test may write there."""
        return self.store.state.objects[resource, f"g-{resource}"]

    def looks_for(self, words: str) -> Stored:
        """The owner, with words about where its orphans are to be looked for. They are under no signature."""
        stored = self.stored("replicasets")
        stored[KEY] = stored[KEY]._replace(entries=f"{words} *{stored[KEY].apart}")
        return stored[KEY]

    def ask_again(self, queue: str = QUEUE) -> None:
        """The key is queued, and nothing else, whatever was with it."""
        found = self.store.state.queue(queue)
        found.state.clear()
        found.stream.clear()
        self.plain.add(queue, [KEY])

    def claim(self, spec: LoadSpec = SPEC) -> Claim:
        self.ask_again(spec.queue)
        batch = self.broker.claim("w", f"n{next(self.nonces)}", [spec], ClaimLimits(lease_ms=5_000, drain_ms=14_000))
        assert isinstance(batch, Batch)
        return batch.claims[0]


@pytest.fixture
def world() -> World:
    return World()


def test_what_an_ingestor_wrote_is_believed(world: World) -> None:
    claim = world.claim()
    assert claim.refusal == ""
    assert claim.owner is not None
    assert claim.owner.signature
    assert len(claim.children) == 3
    assert world.broker.look("pods", ids=["default/web-1"])[1][0].uid == world.pods[1].uid
    assert not world.refusals.counts


def test_counts_are_never_believed(world: World) -> None:
    """Scripts keep them, so no ingestor can sign them. The objects are handed over in their place."""
    owner = world.owner
    blob, apart = codec.encode_apart(owner), codec.template_apart(owner)
    event = Event(KEY, "11", owner.uid, blob, ("=3",), (f"{QUEUE}:{KEY}",), apart=apart)
    world.broker.ingest("replicasets", "10", "11", [event])
    pods = [world.event(each, 11 + n) for n, each in enumerate(world.pods)]
    counted = [each._replace(kind=class_of(pod)) for each, pod in zip(pods, world.pods, strict=True)]
    world.broker.ingest("pods", "10", "20", counted)
    claim = world.claim()
    assert (claim.refusal, len(claim.children), claim.counts) == ("", 3, {})
    world.ask_again()
    batch = world.plain.claim("w", "plain", [SPEC], ClaimLimits(lease_ms=5_000, drain_ms=14_000))
    assert isinstance(batch, Batch)
    assert sum(batch.claims[0].counts.values()) == 3


def test_a_claim_with_the_end_of_turns_is_checked_too(world: World) -> None:
    first = world.claim()
    world.plain.add(QUEUE, [KEY])
    stored = world.stored("replicasets")
    stored[KEY] = stored[KEY]._replace(blob=b"forged")
    finish = Finish(first.queue, first.key, first.nonce, Verdict.OK)
    limits = ClaimLimits(lease_ms=5_000, drain_ms=14_000)
    failures, claimed = world.broker.finish_and_claim([finish], "w", "another", [SPEC], limits)
    batch = claimed()
    assert failures == [0]
    assert isinstance(batch, Batch)
    assert batch.claims[0].refusal != ""


def _left(world: World) -> Batch:
    """A claim that leaves the pods to be loaded."""
    world.ask_again()
    limits = ClaimLimits(lease_ms=5_000, drain_ms=14_000, load_min=3)
    batch = world.broker.claim("w", f"n{next(world.nonces)}", [SPEC], limits)
    assert isinstance(batch, Batch)
    assert (batch.claims[0].refusal, len(batch.claims[0].children), batch.unloaded) == ("", 0, True)
    return batch


def test_what_is_loaded_after_a_claim_is_checked(world: World) -> None:
    (good,) = world.broker.load(_left(world)).claims
    assert (good.refusal, len(good.children)) == ("", 3)
    batch = _left(world)
    stored = world.stored()
    stored["default/web-1"] = stored["default/web-1"]._replace(rv="99")
    (bad,) = world.broker.load(batch).claims
    assert bad.refusal.startswith("pods: ")


Tamper = Callable[[World], None]


def _template(world: World) -> None:
    stored = world.stored("replicasets")
    evil = rs(3, template=b'{"metadata":{"labels":{"app":"web"}},"spec":{"hostPID":true}}')
    stored[KEY] = stored[KEY]._replace(blob=codec.encode(evil))


def _template_beside(world: World) -> None:
    """It is under no signature itself, but its digest is in what is."""
    blob, (name, template) = codec.encode_apart(world.owner), codec.template_apart(world.owner)
    owner = Event(KEY, "11", world.owner.uid, blob, (), (f"{QUEUE}:{KEY}",), apart=(name, template))
    world.broker.ingest("replicasets", "10", "11", [owner])
    assert world.claim().refusal == ""
    parts = world.store.state.apart["replicasets", "g-replicasets"]
    parts[name].content = deflated(inflated(template).replace(b'"spec":{', b'"spec":{"hostPID":true,'))
    assert parts[name].content != template


def _no_template(world: World) -> None:
    """The word that names it is under no signature."""
    stored = world.stored("replicasets")
    stored[KEY] = stored[KEY]._replace(entries="")


def _own_key(world: World) -> None:
    stored = world.stored("replicasets")
    owner, mine = stored[KEY], Signer((Key("0b0b", bytes(range(1, 33))),), SCOPE)
    stored[KEY] = owner._replace(signature=mine.sign("replicasets", owner.rv, owner.uid, owner.blob))


def _stripped(world: World) -> None:
    stored = world.stored("replicasets")
    stored[KEY] = stored[KEY]._replace(signature="")


def _moved_owner(world: World) -> None:
    other = rs(9, name="api", uid="api-uid")
    world.broker.ingest("replicasets", "10", "11", [Event(other.key, "11", other.uid, codec.encode(other))])
    stored = world.stored("replicasets")
    stored[KEY] = stored["default/api"]


def _put_back(world: World) -> None:
    before = world.stored("replicasets")[KEY]
    assert world.claim().refusal == ""
    world.broker.ingest(
        "replicasets",
        "10",
        "12",
        [Event(KEY, "12", world.owner.uid, codec.encode_apart(rs(1)), apart=codec.template_apart(rs(1)))],
    )
    assert world.claim().refusal == ""
    world.stored("replicasets")[KEY] = before


def _pod_of_before_at_a_new_version(world: World) -> None:
    stored = world.stored()
    old = stored["default/web-1"]
    world.broker.ingest("pods", "10", "13", [world.event(pod("web-1", ready=False), 13)])
    stored["default/web-1"] = stored["default/web-1"]._replace(blob=old.blob)


def _twice(world: World) -> None:
    world.store.state.index.setdefault(("pods", "g-pods", "orphan=default"), {})["default/web-1"] = None
    world.looks_for("?default")


def _of_another_resource(world: World) -> None:
    node = world.stored("nodes")["n1"]
    world.stored()["default/web-1"] = node._replace(entries=f"owner={world.owner.uid}")


TAMPERED: dict[str, tuple[Tamper, str]] = {
    "a template of one's choice": (_template, "replicasets: its signature with key 0a0a is not that of its content"),
    "a template beside the owner": (_template_beside, "replicasets: the template beside it is another's"),
    "an owner without its template": (_no_template, "replicasets: the template beside it is another's"),
    "signed with a key of one's own": (_own_key, "replicasets: it is signed with key '0b0b', which is not in our"),
    "written by an ingestor that does not sign": (_stripped, "replicasets: it has no signature"),
    "another owner under this key": (_moved_owner, "replicasets: it is another object's: it was moved here"),
    "the owner as it was before": (_put_back, "replicasets: it is of resourceVersion 2, but 12 was seen before"),
    "a pod as it was, at its new version": (_pod_of_before_at_a_new_version, "pods: its signature with key 0a0a is"),
    "a pod that counts twice": (_twice, "pods: it is there twice: an index was changed"),
    "a node for a pod": (_of_another_resource, "pods: its signature with key 0a0a is not that of its content"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_turn_is_refused_and_nothing_is_written(world: World, what: str) -> None:
    """With a line, a count, a failed turn that is tried again, and no request to the API at all."""
    tamper, said = TAMPERED[what]
    tamper(world)
    api = NoApi()
    engine = Engine(world.broker, api, Settings(), world.clock, [QUEUE])
    world.ask_again()
    batch = engine.claim("w", 8)
    assert isinstance(batch, Batch)
    with pytest.raises(TurnRefused) as refused:
        through(engine, batch, batch.claims[0])
    assert said in str(refused.value)
    assert engine.finish([refused.value.finish]) == [1], "one failed turn: again with back-off"
    assert sum(world.refusals.counts.values()) == 1
    assert list(world.refusals.counts) == [said.partition(":")[0]]


class NoApi(QuietApi):
    """Whoever asks it anything fails the test."""

    def __getattribute__(self, name: str) -> Any:
        def asked(*_: object) -> None:
            raise AssertionError(f"{name} was asked for")

        return asked


@pytest.mark.parametrize("most", [1_000, 0], ids=["with the claim", "loaded after it"])
def test_a_refused_mirror_refuses_every_turn_that_would_read_it_and_is_asked_for_again(
    world: World, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MIRROR_MAX", most)
    node = world.stored("nodes")["n1"]
    world.stored("nodes")["n1"] = node._replace(blob=codec.encode(Node("n1", "node-1", {"a": "b"}, ())))
    engine = Engine(world.broker, NoApi(), Settings(), world.clock, ["daemonset"])
    world.plain.add("daemonset", ["default/x", "default/y"])
    batch = engine.claim("w", 8)
    assert isinstance(batch, Batch)
    for claim in batch.claims:
        with pytest.raises(TurnRefused, match="nodes: its signature"):
            through(engine, batch, claim)
    world.stored("nodes")["n1"] = node
    world.plain.add("daemonset", ["default/z"])
    batch = engine.claim("w", 8)
    assert isinstance(batch, Batch)
    assert batch.claims[-1].refusal == ""
    assert [delta.full for delta in batch.local_caches.values()] == [True]
    assert through(engine, batch, batch.claims[-1]), "gone: it is not there"


def test_a_refused_mirror_object_under_another_id(world: World) -> None:
    world.broker.ingest("nodes", "10", "11", [Event("n2", "11", "node-2", codec.encode(Node("n2", "node-2", {}, ())))])
    world.stored("nodes")["n1"] = world.stored("nodes")["n2"]._replace(entries="mirror")
    claim = world.claim(replace_mirrors())
    assert claim.refusal == "nodes: it is another object's: it was moved here"


def replace_mirrors() -> LoadSpec:
    return load_spec(CONTROLLERS["daemonset"])._replace(local_caches=(("nodes", ""),))


def test_revisions_are_checked_too(world: World) -> None:
    revision = ControllerRevision("default", "web-1", "rev-1", {}, (), 1, "digest", 0, 0)
    event = Event(revision.key, "11", revision.uid, codec.encode(revision), ("orphan=default",))
    owner = world.looks_for("?default")
    world.broker.ingest("controllerrevisions", "10", "11", [event])
    spec = LoadSpec(QUEUE, "replicasets", CONTROLLERS["daemonset"].children)
    assert world.claim(spec).refusal == ""
    assert owner.signature
    stored = world.stored("controllerrevisions")
    stored[revision.key] = stored[revision.key]._replace(rv="12")
    assert world.claim(spec).refusal.startswith("controllerrevisions: its signature")


def test_looks_and_names_that_are_borne_are_checked(world: World) -> None:
    claim = world.claim()
    world.stored()["default/web-1"] = world.stored()["default/web-1"]._replace(rv="99")
    with pytest.raises(ObjectRefused, match="a cached object of pods is refused: pods: its signature"):
        world.broker.look("pods", index=[f"owner={world.owner.uid}"])
    with pytest.raises(ObjectRefused):
        world.broker.announce(claim, world.owner.uid, [Entry("create", "pods/web-1")], lease_ms=5_000)
    assert not world.store.state.queue(QUEUE).expectations, "nothing was recorded"


def test_many_refusals_are_counted_and_said_now_and_then(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Without what is in the object."""
    _template(world)
    with caplog.at_level(logging.INFO, logger="oarlock.signing"):
        for _ in range(30):
            assert world.claim().refusal
        world.clock.advance(SAY_EVERY_MS)
        world.claim()
    first, second = [record.getMessage() for record in caplog.records]
    assert "object refused" in first
    assert f"key={QUEUE}:{KEY}" in first
    assert "more=0" in first
    assert "more=29" in second
    assert "hostPID" not in caplog.text
    assert world.refusals.counts == {"replicasets": 31}


def test_what_has_not_changed_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(pods=200)
    checked: list[Cached] = []
    real = Signer.fault

    def fault(self: Signer, resource: str, cached: Cached) -> str:
        checked.append(cached)
        return real(self, resource, cached)

    monkeypatch.setattr(Signer, "fault", fault)
    for _ in range(3):
        assert world.claim().refusal == ""
    assert len(checked) == 201
    stored = world.stored()
    for name, changed in (("web-5", {"rv": "4"}), ("web-6", {"blob": b"x"}), ("web-7", {"uid": "u"})):
        kept = stored[f"default/{name}"]
        stored[f"default/{name}"] = kept._replace(**changed)  # type: ignore[arg-type]
        assert "is not that of its content" in world.claim().refusal, "a good signature, under other content"
        stored[f"default/{name}"] = kept


def test_what_is_remembered_is_bounded_and_of_one_resource() -> None:
    check = World().broker.check
    sign = Signer(RING, SCOPE).sign
    for first in range(0, 3 * REMEMBERED_MAX, 64):
        many = [Cached("1", f"u{n}", b"b", sign("pods", "1", f"u{n}", b"b")) for n in range(first, first + 64)]
        assert check.fault_of_many("pods", many) == ""
    assert len(check.remembered("pods")) <= 2 * (REMEMBERED_MAX + 64)
    assert "is not that of its content" in check.fault_of_many("controllerrevisions", many), "a good pod only"


def test_every_projection_says_which_object_it_is() -> None:
    samples: dict[str, Any] = {
        "pods": pod("a"),
        "replicasets": rs(1),
        "replicationcontrollers": rs(1, name="rc"),
        "nodes": Node("n", "u", {}, ()),
        "controllerrevisions": ControllerRevision("ns", "r", "u", {}, (), 1, "d", 0, 0),
    }
    for resource in WATCHED:
        if resource in samples:
            obj = samples[resource]
            wanted = obj.name if resource == "nodes" else obj.key
            assert key_in(resource, codec.encode(obj)) == wanted
    assert key_in("pods", b"\x93\x01") == ""
    assert key_in("pods", b"\x91" * 100_000) == ""


def test_what_an_ingestor_reads_and_cannot_is_refused_by_resource() -> None:
    for blob in (b"", b"\xc1", b"\x91" * 100_000, codec.encode(Node("n", "u", {}, ()))):
        with pytest.raises(ObjectRefused) as refused:
            decoded(WATCHED["replicasets"], Cached("1", "u", blob))
        assert refused.value.resource == "replicasets"


def test_any_flip_of_any_bit_is_noticed() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    world = World()
    for _ in range(300):
        stored = world.stored()
        kept = stored["default/web-1"]
        blob = bytearray(kept.blob)
        blob[chance.randrange(len(blob))] ^= 1 << chance.randrange(8)
        stored["default/web-1"] = kept._replace(blob=bytes(blob))
        with pytest.raises(ObjectRefused):
            world.broker.look("pods", ids=["default/web-1"])
        stored["default/web-1"] = kept


def test_somebody_else_s_pod_in_the_index_counts_for_nothing(world: World) -> None:
    """Well signed, and listed where it does not belong: whose it is says the pod, not the index."""
    foreign = pod("api-1", owner_refs=(THEIRS,))
    elsewhere = pod("web-9", namespace="other")
    events = [
        Event(each.key, str(rv), each.uid, codec.encode(each), (f"owner={world.owner.uid}",))
        for rv, each in ((11, foreign), (12, elsewhere))
    ]
    world.broker.ingest("pods", "10", "12", events)
    claim = world.claim()
    assert claim.refusal == ""
    assert claim.owner is not None
    owner: ReplicaSet = codec.decode_replicaset(claim.owner.blob)
    from oarlock.controllers.ownership.claim import claim as sorted_out

    claims = sorted_out(owner, [codec.decode_pod(each.blob) for each in claim.children])
    assert {each.name for each in claims.claimed} == {each.name for each in world.pods}
    assert not claims.release
