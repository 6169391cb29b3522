"""Events: what reaches the server of what is told, and that nobody waits for it."""

import asyncio
import threading

import msgspec
import orjson
import pytest
from aiohttp import web

from oarlock.cluster import events
from oarlock.cluster.client import Client
from oarlock.cluster.event_correlator import COMBINED_PREFIX, Correlator, Note, ObjectRef
from oarlock.cluster.events import EventRecorder
from tests.cluster.client_helpers import config_of, json_response, looped, serving, status_response

SECOND = 10**9
RS = ObjectRef("apps/v1", "ReplicaSet", "default", "web", "u1", "7")


def note(message="Created pod: web-abcde", reason="SuccessfulCreate", about=RS, **more):
    return Note(about, "Normal", reason, message, "replicaset-controller", **more)


def message_of(sending):
    return orjson.loads(sending.body)["message"]


def test_an_event_is_written_as_upstream_does():
    sending = Correlator().correlate(note(host="h1"), 1_767_225_600 * SECOND + 255)
    assert sending.patch is None
    assert sending.name == f"web.{1_767_225_600 * SECOND + 255:x}"
    assert orjson.loads(sending.body) == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": sending.name, "namespace": "default"},
        "involvedObject": {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "namespace": "default",
            "name": "web",
            "uid": "u1",
            "resourceVersion": "7",
        },
        "type": "Normal",
        "reason": "SuccessfulCreate",
        "message": "Created pod: web-abcde",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "replicaset-controller", "host": "h1"},
        "reportingComponent": "replicaset-controller",
        "reportingInstance": "h1",
    }


def test_a_text_that_has_no_utf8_is_spelled_out():
    """Else it would end the sender, and with it all events of the process."""
    assert message_of(Correlator().correlate(note("no file x\udcff"), 0)) == r"no file x\udcff"


def test_the_same_again_counts_up():
    correlator = Correlator()
    first = correlator.correlate(note(), 0)
    again = correlator.correlate(note(), 61 * SECOND)
    assert again.name == first.name
    assert orjson.loads(again.patch) == {
        "count": 2,
        "lastTimestamp": "1970-01-01T00:01:01Z",
        "message": "Created pod: web-abcde",
    }
    assert orjson.loads(again.body)["firstTimestamp"] == "1970-01-01T00:00:00Z"
    assert orjson.loads(again.body)["count"] == 2


def test_the_tenth_of_a_kind_is_combined():
    """Nine stand alone; from the tenth on one event stands for the rest and counts up."""
    correlator = Correlator()
    sent = [correlator.correlate(note(f"Created pod: web-{n}"), n * SECOND) for n in range(13)]
    assert [message_of(sending).startswith(COMBINED_PREFIX) for sending in sent] == [False] * 9 + [True] * 4
    assert len({sending.name for sending in sent[9:]}) == 1
    assert [orjson.loads(sending.body)["count"] for sending in sent[9:]] == [1, 2, 3, 4]
    assert orjson.loads(sent[10].patch)["message"] == f"{COMBINED_PREFIX}Created pod: web-10"


def test_after_ten_quiet_minutes_counting_begins_afresh():
    correlator = Correlator()
    for n in range(12):
        correlator.correlate(note(f"m{n}"), n)
    assert message_of(correlator.correlate(note("still"), 600 * SECOND)) == f"{COMBINED_PREFIX}still"
    assert message_of(correlator.correlate(note("fresh"), 1201 * SECOND)) == "fresh"


def test_other_reasons_are_not_similar():
    correlator = Correlator()
    for n in range(12):
        correlator.correlate(note(f"m{n}"), n)
    assert message_of(correlator.correlate(note("x", reason="SuccessfulDelete"), 13)) == "x"


def test_an_object_may_say_25_things_at_once_then_one_in_five_minutes():
    correlator = Correlator()
    let_through = [correlator.correlate(note(f"m{n}"), 0) is not None for n in range(40)]
    assert let_through == [True] * 25 + [False] * 15
    assert correlator.correlate(note("early"), 299 * SECOND) is None
    assert correlator.correlate(note("in time"), 301 * SECOND) is not None
    assert correlator.correlate(note("too soon"), 302 * SECOND) is None
    other = ObjectRef("apps/v1", "ReplicaSet", "default", "web", "u2")
    assert correlator.correlate(note(about=other), 302 * SECOND) is not None


def test_what_was_filtered_still_counts():
    correlator = Correlator()
    for _ in range(30):
        correlator.correlate(note(), 0)
    assert orjson.loads(correlator.correlate(note(), 301 * SECOND).body)["count"] == 31


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr("oarlock.cluster.event_correlator.CACHE_MAX", 10)
    correlator = Correlator()
    for n in range(100):
        correlator.correlate(note(about=ObjectRef("v1", "Pod", "ns", f"p{n}", f"u{n}")), n)
    for cache in (correlator._seen, correlator._similar, correlator._spam):
        assert len(cache._entries) == 10
    for n in range(100):
        correlator.correlate(note(f"m{n}"), n)
    [*_, similar] = correlator._similar._entries.values()
    assert len(similar.messages) < 10


def test_names_fit_and_cluster_objects_go_to_default():
    long = ObjectRef("v1", "Node", "", "n" * 253, "u")
    sending = Correlator().correlate(note(about=long), 1_767_225_600 * SECOND)
    assert len(sending.name) == 253
    assert sending.namespace == "default"


class Sink:
    """A server that stores events by name and can be told to fail."""

    def __init__(self) -> None:
        self.stored: dict[str, dict] = {}
        self.requests: list[str] = []
        self.failures: list[web.Response] = []
        self.blocked: asyncio.Event | None = None

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(request.method)
        if self.blocked is not None:
            await self.blocked.wait()
        if self.failures:
            return self.failures.pop(0)
        given = orjson.loads(await request.read())
        if request.method == "POST":
            assert request.path == "/api/v1/namespaces/default/events"
            self.stored[given["metadata"]["name"]] = given
            return json_response(self.shown(given), 201)
        name = request.path.rsplit("/", 1)[1]
        if name not in self.stored:
            return status_response(404, "NotFound")
        self.stored[name].update(given)
        return json_response(self.shown(self.stored[name]))

    @staticmethod
    def shown(event: dict) -> dict:
        return event | {"metadata": event["metadata"] | {"uid": "e1"}}


class Sleeps:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, delay_s: float) -> None:
        self.slept.append(delay_s)
        await asyncio.sleep(0)


async def settled(recorder: EventRecorder) -> None:
    while recorder.sent + recorder.failed + recorder.filtered + recorder.dropped < recorder.told:
        await asyncio.sleep(0.001)


@looped
async def test_events_reach_the_server():
    """Told from another thread as well; a repetition is a PATCH, and a POST again once the server forgot it."""
    sink = Sink()
    async with serving(sink.handle) as url, Client(config_of(url)) as client:
        recorder = EventRecorder(client, clock_ns=iter(range(1, 99)).__next__)
        recorder.tell(note())  # before the start
        recorder.start()
        thread = threading.Thread(target=recorder.tell, args=(note(),))
        thread.start()
        await asyncio.to_thread(thread.join)
        await settled(recorder)
        assert [stored["count"] for stored in sink.stored.values()] == [2]
        assert sink.requests == ["POST", "PATCH"]
        sink.stored.clear()
        recorder.tell(note())
        await settled(recorder)
        assert sink.requests[2:] == ["PATCH", "POST"]
        assert [stored["count"] for stored in sink.stored.values()] == [3]
        await recorder.close()
    assert (recorder.told, recorder.sent, recorder.dropped, recorder.failed) == (3, 3, 0, 0)


@looped
async def test_a_note_that_comes_as_the_queue_runs_empty_is_sent():
    """The teller's thread may be stopped at any place, and the sender fall asleep meanwhile: here before the note is in
    the queue, which had another one when it was called.
    """
    sink, stopped, go_on = Sink(), threading.Event(), threading.Event()

    def clock_ns():
        if threading.current_thread().name == "slow":
            stopped.set()
            go_on.wait()
        return next(times)

    times = iter(range(1, 99))
    async with serving(sink.handle) as url, Client(config_of(url)) as client:
        recorder = EventRecorder(client, clock_ns=clock_ns)
        recorder.start()
        recorder.tell(note("first"))
        recorder.tell(note("second"))
        slow = threading.Thread(target=recorder.tell, args=(note("third"),), name="slow")
        slow.start()
        await asyncio.to_thread(stopped.wait)
        while recorder.sent < 2:
            await asyncio.sleep(0.001)
        go_on.set()
        await asyncio.to_thread(slow.join)
        await settled(recorder)
        recorder.tell(note("fourth"))
        await settled(recorder)
        await recorder.close()
    assert sorted(stored["message"] for stored in sink.stored.values()) == ["first", "fourth", "second", "third"]


@looped
async def test_an_unreachable_server_is_tried_twelve_times():
    sink, sleeps = Sink(), Sleeps()
    sink.failures = [web.Response(status=502) for _ in range(99)]
    async with serving(sink.handle) as url, Client(config_of(url)) as client:
        recorder = EventRecorder(client, sleep=sleeps, jitter=lambda: 0.5)
        recorder.start()
        recorder.tell(note())
        await settled(recorder)
        await recorder.close()
    assert sink.requests == ["POST"] * 12
    assert sleeps.slept == [5.0] + [10.0] * 10
    assert (recorder.sent, recorder.failed) == (0, 1)


@looped
async def test_a_refusal_is_final_and_429_is_not():
    sink, sleeps = Sink(), Sleeps()
    sink.failures = [
        status_response(403, "Forbidden", causes=[{"reason": "NamespaceTerminating"}]),
        web.Response(status=429, headers={"Retry-After": "3"}),
    ]
    async with serving(sink.handle) as url, Client(config_of(url)) as client:
        recorder = EventRecorder(client, sleep=sleeps)
        recorder.start()
        recorder.tell(note("one"))
        recorder.tell(note("two"))
        await settled(recorder)
        await recorder.close()
    assert [stored["message"] for stored in sink.stored.values()] == ["two"]
    assert sleeps.slept == [3.0]
    assert (recorder.sent, recorder.failed) == (1, 1)


@looped
async def test_a_full_queue_drops_and_counts(monkeypatch):
    monkeypatch.setattr(events, "QUEUE_MAX", 5)
    monkeypatch.setattr(events, "WARNINGS_MAX", 7)
    sink = Sink()
    sink.blocked = asyncio.Event()
    async with serving(sink.handle) as url, Client(config_of(url)) as client:
        recorder = EventRecorder(client)
        recorder.start()
        recorder.tell(note("m"))
        while not sink.requests:
            await asyncio.sleep(0.001)
        for n in range(9):
            recorder.tell(note(f"m{n}"))
        assert recorder.dropped == 4
        for n in range(3):
            recorder.tell(msgspec.structs.replace(note(f"w{n}"), type="Warning"))
        assert recorder.dropped == 5, "for two warnings there is room"
        sink.blocked.set()
        await settled(recorder)
        await recorder.close()
    assert (recorder.told, recorder.sent) == (13, 8)


@pytest.mark.parametrize("told", [0, 4])
@looped
async def test_closing_sends_what_it_can_in_its_time(told):
    sink = Sink()
    async with serving(sink.handle) as url, Client(config_of(url)) as client:
        recorder = EventRecorder(client)
        recorder.start()
        for n in range(told):
            recorder.tell(note(f"m{n}"))
        await recorder.close(flush_s=5)
        recorder.tell(note("after"))
    assert (recorder.sent, recorder.dropped) == (told, 1)


@looped
async def test_closing_does_not_wait_for_a_dead_server():
    """It would take as long as a request may, which is more than this test has."""
    sink = Sink()
    sink.blocked = asyncio.Event()
    async with serving(sink.handle) as url, Client(config_of(url), request_timeout_s=600.0) as client:
        recorder = EventRecorder(client)
        recorder.start()
        recorder.tell(note("one"))
        recorder.tell(note("two"))
        while not sink.requests:
            await asyncio.sleep(0.001)
        await recorder.close(flush_s=0.05)
    assert (recorder.sent, recorder.failed, recorder.dropped) == (0, 1, 1)


@looped
async def test_events_keep_out_of_the_way_of_what_is_more_urgent():
    """While busy there is a pause before each; none of them is lost, and at the end nothing is waited for."""
    sink, sleeps, busy = Sink(), Sleeps(), [True]
    async with serving(sink.handle) as url, Client(config_of(url)) as client:
        recorder = EventRecorder(client, busy=lambda: busy[0], sleep=sleeps)
        recorder.start()
        for text in ("one", "two"):
            recorder.tell(note(text))
        await settled(recorder)
        assert sleeps.slept == [events.SPACING_S] * 2
        busy[0] = False
        recorder.tell(note("three"))
        await settled(recorder)
        busy[0] = True
        sink.blocked = asyncio.Event()
        for text in ("four", "five"):
            recorder.tell(note(text))
        while len(sink.requests) < 4:
            await asyncio.sleep(0.001)
        sink.blocked.set()
        await recorder.close()
    assert (recorder.sent, recorder.dropped) == (5, 0)
    assert len(sleeps.slept) == 3
