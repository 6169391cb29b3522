"""Faults on demand, and that the audit log tells what was committed all the same."""

from __future__ import annotations

import http.client
import json
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.http.faults import Faults, fault_from
from tests.sandbox.api_harness import JSON, MERGE, PODS, Api, names, pod, quick, running
from tests.whole_lines import whole_lines

FAULTS = "/_oarlock/faults"
RV = "oarlock.io/committed"


def audited(path: Path, count: int) -> list[dict[str, Any]]:
    """The audit log once it has `count` lines."""
    deadline_s = time.monotonic() + 20
    while True:
        lines = whole_lines(path) if path.exists() else []
        if len(lines) >= count or time.monotonic() > deadline_s:
            assert len(lines) == count, lines
            return [json.loads(line) for line in lines]
        time.sleep(0.01)


def inject(api: Api, *faults: dict[str, Any], seed: int = 1) -> None:
    code, answer = api.call("PUT", FAULTS, {"seed": seed, "faults": list(faults)})
    assert code == 200, answer


def test_a_dropped_answer_is_committed_and_audited(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with running(quick(faults_enabled=True, audit_log=log)) as api:
        inject(api, {"action": "dropAnswer", "verbs": ["create"], "resources": ["pods"], "maxCount": 1})
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            api.call("POST", PODS, pod("a"))
        assert names(api.get(PODS)) == ["a"]
        api.create(PODS, pod("b"))
        first, second = audited(log, 2)
        stored = api.get(f"{PODS}/a")
    assert first["objectRef"]["name"] == "a"
    assert first["objectRef"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    assert first["responseStatus"]["code"] == 201
    assert first["annotations"] == {"oarlock.io/committed": "true", "oarlock.io/answer": "dropAnswer"}
    assert second["annotations"] == {"oarlock.io/committed": "true"}


def test_a_write_whose_client_has_gone_lands_all_the_same(tmp_path: Path) -> None:
    """What was on its way when its sender died takes effect later: the case slot names are for."""
    log = tmp_path / "audit.log"
    with running(quick(faults_enabled=True, audit_log=log)) as api:
        for number, delay_ms in enumerate((1_000, 15_000), 1):  # how long it takes to leave depends on the machine
            inject(api, {"action": "delayBeforeCommit", "delayMs": delay_ms, "verbs": ["create"]})
            body = json.dumps(pod(f"late-{number}")).encode()
            leaver = http.client.HTTPConnection("127.0.0.1", api.port)
            leaver.request("POST", PODS, body, {"Content-Type": "application/json", "User-Agent": "leaver"})
            while not api.get(FAULTS)["faults"][0]["applied"]:  # the server has it
                time.sleep(0.01)
            leaver.close()
            there = names(api.get(PODS))
            event = audited(log, number)[-1]
            if f"late-{number}" not in there:
                break
        assert names(api.get(PODS)) == [*there, f"late-{number}"]
    assert (event["verb"], event["userAgent"], event["annotations"][RV]) == ("create", "leaver", "true")


def test_a_name_is_refused_and_its_neighbour_is_not() -> None:
    """By its name alone or with the namespace; the POST names it in its body, the DELETE in its path."""
    for asked in ("a", "default/a"):
        with running(quick(faults_enabled=True)) as api:
            inject(api, {"action": "fail500BeforeCommit", "names": [asked], "verbs": ["create", "delete"]})
            assert [api.call("POST", PODS, pod(name))[0] for name in ("a", "b", "a")] == [500, 201, 500], asked
            inject(api)
            api.create(PODS, pod("a"))
            inject(api, {"action": "fail500AfterCommit", "names": [asked], "verbs": ["delete"]})
            assert [api.call("DELETE", f"{PODS}/{name}")[0] for name in ("a", "b")] == [500, 200], asked
            assert names(api.get(PODS)) == []


def test_a_sticky_fault_draws_once_for_each_name() -> None:
    with running(quick(faults_enabled=True)) as api:
        inject(api, {"action": "fail500BeforeCommit", "sticky": True, "rate": 0.5, "verbs": ["create"]}, seed=3)
        rounds = [[api.call("POST", PODS, pod(f"p-{number}"))[0] for number in range(20)] for _ in range(3)]
    refused = [code == 500 for code in rounds[0]]
    assert 3 < sum(refused) < 17
    for later in rounds[1:]:
        assert [code == 500 for code in later] == refused, "what was refused once is refused for ever, and no other"


def test_failures_before_and_after_the_commit(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with running(quick(faults_enabled=True, audit_log=log)) as api:
        inject(api, {"action": "fail500BeforeCommit", "maxCount": 1}, {"action": "fail500AfterCommit", "maxCount": 1})
        # Both befall the first request: before comes first. The second fault is used up with it.
        code, status = api.call("POST", PODS, pod("a"))
        assert (code, status["reason"]) == (500, "InternalError")
        inject(api, {"action": "fail500AfterCommit", "maxCount": 1})
        assert api.call("POST", PODS, pod("b"))[0] == 500
        assert names(api.get(PODS)) == ["b"]
        before, after = audited(log, 2)
    assert [e["annotations"][RV] for e in (before, after)] == ["false", "true"]
    assert [e["responseStatus"]["code"] for e in (before, after)] == [500, 500]
    assert after["objectRef"]["resourceVersion"]


def test_a_webhook_that_cannot_be_called() -> None:
    """In the words of a real server, so that clients tell it from other failures."""
    with running(quick(faults_enabled=True)) as api:
        inject(api, {"action": "failWebhook", "verbs": ["create"], "resources": ["pods"], "maxCount": 1})
        code, status = api.call("POST", PODS, pod("a"))
        assert (code, status["reason"]) == (500, "InternalError")
        assert status["message"].startswith('Internal error occurred: failed calling webhook "pods.example.com": Post')
        assert names(api.get(PODS)) == []
        api.create(PODS, pod("a"))


def test_a_webhook_that_denies_in_one_namespace() -> None:
    with running(quick(faults_enabled=True)) as api:
        api.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        inject(api, {"action": "denyWebhook", "verbs": ["create"], "resources": ["pods"], "namespaces": ["shop"]})
        code, status = api.call("POST", "/api/v1/namespaces/shop/pods", pod("a"))
        assert (code, status["reason"]) == (403, "Forbidden")
        assert status["message"].startswith('admission webhook "pods.example.com" denied the request: ')
        assert names(api.get("/api/v1/namespaces/shop/pods")) == []
        api.create(PODS, pod("a"))


def test_a_conflict() -> None:
    """In the words of a real server, which differ for a create and a change. Nothing is done."""
    with running(quick(faults_enabled=True)) as api:
        inject(api, {"action": "conflict409", "names": ["a"]})
        code, status = api.call("POST", PODS, pod("a"))
        assert (code, status["reason"], status["message"]) == (409, "AlreadyExists", 'pods "a" already exists')
        api.create(PODS, pod("b"))
        inject(api, {"action": "conflict409", "verbs": ["patch", "delete"], "names": ["b"]})
        for method, body in (("PATCH", {"metadata": {"labels": {"x": "y"}}}), ("DELETE", None)):
            code, status = api.call(method, f"{PODS}/b", body, MERGE)
            assert (code, status["reason"]) == (409, "Conflict"), method
            assert "the object has been modified" in status["message"]
        assert names(api.get(PODS)) == ["b"]


def test_clients_that_are_spared_and_a_fault_taken_away() -> None:
    with running(quick(faults_enabled=True)) as api:
        faults = api.cluster.faults
        assert faults is not None
        fault = fault_from({"action": "refuse429", "verbs": ["list"], "userAgent": "our", "spares": ["(test)"]})
        other = fault_from({"action": "refuse429", "verbs": ["list"], "userAgent": "another"})
        for each in (fault, other):
            api.inside(lambda each=each: api.cluster.requests.inject(each))

        def code(agent: str) -> int:
            return api.raw("GET", PODS, headers={"User-Agent": agent})[0]

        agents = ("ours/1 (worker)", "ours/1 (test)", "stranger/1", "another/1")
        assert [code(agent) for agent in agents] == [429, 200, 200, 429]
        api.inside(lambda: faults.remove(fault))
        api.inside(lambda: faults.remove(fault))
        assert [code(agent) for agent in agents] == [200, 200, 200, 429]
        assert fault.describe()["spares"] == ["(test)"]


def test_too_many_requests(tmp_path: Path) -> None:
    with running(quick(faults_enabled=True)) as api:
        inject(api, {"action": "refuse429", "retryAfterS": 3, "verbs": ["create", "list"], "maxCount": 2})
        code, status = api.call("POST", PODS, pod("a"))
        assert (code, status["reason"], status["details"]["retryAfterSeconds"]) == (429, "TooManyRequests", 3)
        assert api.headers is not None
        assert api.headers["Retry-After"] == "3"
        assert api.call("GET", PODS)[0] == 429
        assert names(api.get(PODS)) == []


def test_the_timeout_parameter_bounds_a_delay() -> None:
    with running(quick(faults_enabled=True)) as api:
        inject(api, {"action": "delayBeforeCommit", "delayMs": 60_000, "maxCount": 1})
        began_s = time.monotonic()
        code, status = api.call("POST", PODS, pod("a"), timeout="200ms")
        assert (code, status["reason"]) == (504, "Timeout")
        assert time.monotonic() - began_s < 15
        assert names(api.get(PODS)) == []
        inject(api, {"action": "delayAfterCommit", "delayMs": [1, 2]})
        api.create(PODS, pod("b"), timeout="5s")


def test_the_time_of_a_write_begins_when_it_reaches_the_machine(tmp_path: Path) -> None:
    """The server comes to read it later, as on a busy machine. Its client counts on it that it is not carried out."""
    log = tmp_path / "audit.log"
    with running(quick(audit_log=log)) as api:
        busy, go_on = threading.Event(), threading.Event()

        def work() -> None:
            busy.set()
            assert go_on.wait(20)

        client = http.client.HTTPConnection("127.0.0.1", api.port, timeout=20)
        client.connect()
        at_work = threading.Thread(target=api.inside, args=[work])
        at_work.start()
        assert busy.wait(20)
        before_s = time.time()
        client.request("POST", f"{PODS}?timeout=100ms", json.dumps(pod("late")), {"Content-Type": JSON})
        after_s = time.time()
        threading.Timer(1.0, go_on.set).start()
        with client.getresponse() as answer:
            assert (answer.status, json.load(answer)["reason"]) == (504, "Timeout")
        client.close()
        at_work.join()
        api.create(PODS, pod("in-time"), timeout="20s")
        assert names(api.get(PODS)) == ["in-time"]
        refused, _ = audited(log, 2)
        assert refused["annotations"][RV] == "false"
        received_s = datetime.fromisoformat(refused["requestReceivedTimestamp"]).timestamp()
        assert before_s - 0.03 < received_s < after_s + 0.5, "and not when it was read"


def test_a_stalled_watch_says_nothing_and_then_everything() -> None:
    with running(quick(faults_enabled=True)) as api:
        watch = api.watch(PODS, resourceVersion=api.get(PODS)["metadata"]["resourceVersion"], allowWatchBookmarks="1")
        began_s = time.monotonic()
        inject(api, {"action": "stallWatch", "durationS": 0.6, "resources": ["pods"]})
        api.create(PODS, pod("a"))
        assert watch.until("ADDED")["object"]["metadata"]["name"] == "a"
        assert time.monotonic() - began_s > 0.5


def test_a_stalled_watch_does_not_even_say_its_end() -> None:
    with running(quick(faults_enabled=True)) as api:
        began_s = time.monotonic()
        inject(api, {"action": "stallWatch", "durationS": 1.6, "resources": ["pods"]})
        assert api.watch(PODS, resourceVersion="1", timeoutSeconds="1").ended()
        assert time.monotonic() - began_s > 1.5


def test_a_history_cut_ends_watches_and_makes_old_versions_gone() -> None:
    with running(quick(faults_enabled=True)) as api:
        api.create(PODS, pod("a"))
        rv = api.get(PODS)["metadata"]["resourceVersion"]
        watch = api.watch(PODS, resourceVersion=rv)
        other = api.watch("/api/v1/nodes", resourceVersion=rv)
        api.create(PODS, pod("b"))
        assert watch.next()["type"] == "ADDED"
        code, _ = api.call("POST", FAULTS, {"action": "cutHistory", "resources": ["pods"]})
        assert code == 200
        assert watch.ended()
        error = api.watch(PODS, resourceVersion=rv).next()
        assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
        # From now on all is well again, and the watch of another kind never noticed.
        fresh = api.watch(PODS, resourceVersion=api.get(PODS)["metadata"]["resourceVersion"])
        api.create(PODS, pod("c"))
        assert fresh.next()["object"]["metadata"]["name"] == "c"
        api.create("/api/v1/nodes", {"metadata": {"name": "n"}})
        assert other.next()["object"]["metadata"]["name"] == "n"


def test_the_admin_endpoint_is_closed_by_default(api: Api) -> None:
    assert api.call("GET", FAULTS)[0] == 404
    assert api.call("PUT", FAULTS, {"faults": []})[0] == 404


def test_faults_are_listed_with_their_counts_and_cleared() -> None:
    with running(quick(faults_enabled=True)) as api:
        inject(api, {"action": "fail500BeforeCommit", "maxCount": 1}, seed=7)
        api.call("POST", PODS, pod("a"))
        shown = api.get(FAULTS)
        assert (shown["seed"], shown["faults"][0]["applied"]) == (7, 1)
        assert api.call("DELETE", FAULTS)[1]["faults"] == []
        # What is listed can be given back.
        assert api.call("PUT", FAULTS, shown)[0] == 200


def test_the_seed_decides() -> None:
    def draws(seed: int) -> list[bool]:
        faults = Faults(seed)
        faults.add(fault_from({"action": "dropAnswer", "rate": 0.3}), 0.0)
        return [faults.choose("create", "pods", "x") is not None for _ in range(200)]

    assert draws(1) == draws(1) != draws(2)
    assert 30 < sum(draws(1)) < 90


@pytest.mark.parametrize(
    ("verb", "resource", "agent", "meets"),
    [
        ("create", "pods", "oarlock/1", True),
        ("delete", "pods", "oarlock/1", False),
        ("create", "replicasets", "oarlock/1", False),
        ("create", "pods/status", "oarlock/1", False),
        ("create", "pods", "kubectl/1", False),
    ],
)
def test_the_filter(verb: str, resource: str, agent: str, meets: bool) -> None:
    faults = Faults()
    spec = {"action": "dropAnswer", "verbs": ["create"], "resources": ["pods"], "userAgent": "oarlock"}
    faults.add(fault_from(spec), 0.0)
    assert (faults.choose(verb, resource, agent) is not None) is meets


@pytest.mark.parametrize(
    "spec",
    [
        {"action": "explode"},
        {"action": "dropAnswer", "colour": "red"},
        {"action": "dropAnswer", "rate": "often"},
        {"action": "dropAnswer", "verbs": "create"},
        [],
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(spec: Any) -> None:
    with pytest.raises(ApiError) as refused:
        fault_from(spec)
    assert refused.value.code == 400
