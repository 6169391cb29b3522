"""Watches: order, selectors, bookmarks, history, ends."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from oarlock.sandbox.apiserver.http.watch import Pace
from tests.sandbox.api_harness import PODS, SETS, TABLE, Api, pod, quick, replicaset, running

SLOW = Pace(quiet_s=60.0, progress_s=60.0)


def told(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


def version(api: Api) -> str:
    return str(api.get(PODS)["metadata"]["resourceVersion"])


def test_a_watch_goes_on_from_its_resource_version(api: Api) -> None:
    api.create(PODS, pod("a"))
    rv = version(api)
    api.create(PODS, pod("b"))
    watch = api.watch(PODS, resourceVersion=rv)
    api.patch(f"{PODS}/b/status", {"status": {"phase": "Running"}})
    api.delete(f"{PODS}/b")
    assert [told(e) for e in watch.take(4)] == [
        ("ADDED", "b"),
        ("MODIFIED", "b"),
        ("MODIFIED", "b"),
        ("DELETED", "b"),
    ]


def test_events_carry_rising_resource_versions(api: Api) -> None:
    watch = api.watch(PODS, resourceVersion=version(api))
    for name in "abc":
        api.create(PODS, pod(name))
    api.delete(f"{PODS}/b")
    events = watch.take(5)
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(set(versions))
    assert versions[-1] == int(version(api))


@pytest.mark.parametrize("rv", [{}, {"resourceVersion": "0"}])
def test_without_a_resource_version_it_begins_with_what_there_is(api: Api, rv: dict[str, str]) -> None:
    api.create(PODS, pod("a"))
    watch = api.watch(PODS, **rv)
    api.create(PODS, pod("b"))
    assert [told(e) for e in watch.take(2)] == [("ADDED", "a"), ("ADDED", "b")]


def test_a_selector_sees_objects_come_and_go(api: Api) -> None:
    """What a label change takes out of the selection is DELETED for this watch, as it last was in it."""
    api.create(PODS, pod("a", {"app": "web"}))
    watch = api.watch(PODS, resourceVersion=version(api), labelSelector="app=web")
    api.create(PODS, pod("other"))
    api.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "api"}}})
    left_at = version(api)
    api.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "web", "x": "1"}}})
    api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "2"}}})
    events = watch.take(3)
    assert [told(e) for e in events] == [("DELETED", "a"), ("ADDED", "a"), ("MODIFIED", "a")]
    left = events[0]["object"]["metadata"]
    assert (left["labels"], left["resourceVersion"]) == ({"app": "web"}, left_at)


def test_a_watch_of_one_namespace_and_one_name(api: Api) -> None:
    rv = version(api)
    space, one = api.watch(PODS, resourceVersion=rv), api.watch(f"{PODS}/b", resourceVersion=rv)
    api.create("/api/v1/namespaces/kube-system/pods", pod("b"))
    for name in "ab":
        api.create(PODS, pod(name))
    assert [told(e) for e in space.take(2)] == [("ADDED", "a"), ("ADDED", "b")]
    assert told(one.next()) == ("ADDED", "b")


def test_initial_events_end_with_a_marked_bookmark(api: Api) -> None:
    api.create(PODS, pod("a"))
    watch = api.watch(PODS, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true")
    assert told(watch.next()) == ("ADDED", "a")
    mark = watch.next()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["object"]["metadata"]["resourceVersion"] == version(api)
    code, status = api.call("GET", PODS, watch="true", sendInitialEvents="true")
    assert (code, status["reason"]) == (422, "Invalid")


def test_bookmarks_show_progress_made_elsewhere(api: Api) -> None:
    """A quiet resource learns soon how far the cluster is, and hears a bookmark even when all is quiet."""
    watch = api.watch(SETS, resourceVersion=version(api), allowWatchBookmarks="true")
    api.create(PODS, pod("a"))
    target = version(api)
    marks = [watch.next()]
    while marks[-1]["object"]["metadata"]["resourceVersion"] != target:
        marks.append(watch.next())
    assert {m["type"] for m in marks} == {"BOOKMARK"}
    assert marks[-1]["object"]["kind"] == "ReplicaSet"
    assert watch.next()["object"]["metadata"]["resourceVersion"] == target


def test_no_bookmarks_unless_asked_for() -> None:
    with running(quick(pace=Pace(quiet_s=0.0, progress_s=0.0))) as api:
        watch = api.watch(PODS, resourceVersion=version(api), timeoutSeconds=1)
        assert watch.ended()


def test_a_watch_ends_after_its_time(api: Api) -> None:
    began_s = time.monotonic()
    watch = api.watch(SETS, timeoutSeconds=1)
    assert watch.ended()
    assert 0.9 < time.monotonic() - began_s < 10.0


def test_history_that_is_gone_is_an_error_event() -> None:
    with running(quick(history_events_max=2, pace=SLOW)) as api:
        rv = version(api)
        for name in "abcdef":
            api.create(PODS, pod(name))
        watch = api.watch(PODS, resourceVersion=rv)
        error = watch.next()
        assert error["type"] == "ERROR"
        status = error["object"]
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
        assert status["message"].startswith(f"too old resource version: {rv} (")
        assert watch.ended()


def test_a_resource_version_of_another_life_is_gone_too(api: Api) -> None:
    error = api.watch(PODS, resourceVersion=10**9).next()
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)


def test_tables_row_by_row(api: Api) -> None:
    watch = api.watch(SETS, accept=TABLE, resourceVersion=version(api))
    api.create(SETS, replicaset())
    api.patch(f"{SETS}/web/scale", {"spec": {"replicas": 7}})
    events = watch.take(2)
    assert [e["type"] for e in events] == ["ADDED", "MODIFIED"]
    assert [e["object"]["kind"] for e in events] == ["Table", "Table"]
    assert [e["object"]["rows"][0]["cells"][:2] for e in events] == [["web", 3], ["web", 7]]


def test_all_watchers_get_all_events(api: Api) -> None:
    """Fast and slow watchers alike: what one has not read yet waits for it."""
    rv = version(api)
    watches = [api.watch(PODS, resourceVersion=rv) for _ in range(10)]
    for number in range(100):
        api.create(PODS, pod(f"p{number}"))
    for watch in watches:
        assert [told(e)[1] for e in watch.take(100)] == [f"p{number}" for number in range(100)]


def test_stopping_the_server_ends_watches_in_good_order() -> None:
    with running() as api:
        watch = api.watch(PODS, resourceVersion=version(api))
        api.create(PODS, pod("a"))
        assert told(watch.next()) == ("ADDED", "a")
        began_s = time.monotonic()
        api.inside(api.cluster.requests.stop)
        assert watch.ended()
        assert time.monotonic() - began_s < 5.0


def test_a_client_that_goes_is_forgotten(api: Api) -> None:
    """A watch whose client has left ends by itself, also when nothing happens."""
    watch = api.watch(PODS, resourceVersion=version(api))
    log = api.cluster.store.logs["Pod"]
    await_waiting(api, log, 1)
    watch.close()
    await_waiting(api, log, 0)


def await_waiting(api: Api, log: Any, count: int) -> None:
    deadline_s = time.monotonic() + 20
    while (found := waiting(api, log)) != count:
        assert time.monotonic() < deadline_s, f"{found} wait, not {count}"
        time.sleep(0.05)


def waiting(api: Api, log: Any) -> int:
    def count() -> int:
        return sum(not waiter.done() for waiter in log._waiters)

    for _ in range(20):  # the watch may be between two waits
        if found := api.inside(count):
            return found
        time.sleep(0.01)
    return 0


def test_a_watch_of_an_unknown_kind_is_refused(api: Api) -> None:
    code, body = api.raw("GET", "/apis/apps/v1/deploymints?watch=1")
    assert (code, json.loads(body)["reason"]) == (404, "NotFound")
