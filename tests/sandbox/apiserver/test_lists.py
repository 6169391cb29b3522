"""Lists: pages of one moment, resourceVersion semantics, tables."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from oarlock.sandbox.apiserver.kinds.kinds import KINDS
from oarlock.sandbox.apiserver.store.events import Listing
from oarlock.sandbox.apiserver.verbs.listing import SNAPSHOT_S, SNAPSHOTS_MAX, Snapshots, list_page
from tests.sandbox.api_harness import PODS, SETS, TABLE, Api, names, pod, quick, replicaset, running, with_params
from tests.sandbox.embedded_world import add, store_with


def pages(api: Api, between: Any, **params: Any) -> list[Any]:
    """Every page of a list; `between()` is called after each."""
    found = [api.get(PODS, **params)]
    while token := found[-1]["metadata"].get("continue"):
        between()
        found.append(api.get(PODS, **params, **{"continue": token}))
    return found


def test_pages_show_the_moment_of_the_first_one(api: Api) -> None:
    """Whatever happens between two pages, together they are the list as it was."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number in range(20):
        api.create(PODS, pod(f"p{number:02d}", {"even": str(number % 2 == 0)}))
    whole = api.get(PODS)

    def change() -> None:
        name = f"p{chance.randrange(20):02d}"
        api.call("DELETE", f"{PODS}/{name}")
        api.create(PODS, pod(f"q{chance.randrange(10**9)}"))
        other = f"p{chance.randrange(20):02d}"
        api.call("PATCH", f"{PODS}/{other}", {"metadata": {"labels": {"x": "y"}}}, "application/merge-patch+json")

    found = pages(api, change, limit=6)
    assert [len(page["items"]) for page in found] == [6, 6, 6, 2]
    assert [page["metadata"].get("remainingItemCount") for page in found] == [14, 8, 2, None]
    assert [item for page in found for item in page["items"]] == whole["items"]
    assert {page["metadata"]["resourceVersion"] for page in found} == {whole["metadata"]["resourceVersion"]}


def test_more_lists_at_a_time_than_are_kept(api: Api) -> None:
    """Each shows its own moment, in whatever order their pages are asked for, and a page can be asked for again."""
    whole: list[list[str]] = []
    tokens: list[str] = []
    for number in range(SNAPSHOTS_MAX + 4):
        for part in "xyz":
            api.create(PODS, pod(f"p{number:02d}{part}"))
        if number:
            api.delete(f"{PODS}/p{number - 1:02d}y")
        whole.append(names(api.get(PODS)))
        tokens.append(api.get(PODS, limit=1)["metadata"]["continue"])
    for _ in range(2):
        for expected, token in zip(whole, tokens, strict=True):
            found, following = expected[:1], token
            while following:
                page = api.get(PODS, limit=7, **{"continue": following})
                found += names(page)
                following = page["metadata"].get("continue")
            assert found == expected


def test_pages_with_a_selector(api: Api) -> None:
    for number in range(9):
        api.create(PODS, pod(f"p{number}", {"even": str(number % 2 == 0).lower()}))
    found = pages(api, lambda: None, limit=2, labelSelector="even=true")
    assert [names(page) for page in found] == [["p0", "p2"], ["p4", "p6"], ["p8"]]
    assert "remainingItemCount" not in found[0]["metadata"]


def test_a_token_of_what_nobody_knows_any_more_is_refused_with_a_way_on() -> None:
    with running(quick(history_events_max=4, faults_enabled=True)) as api:
        for name in "abcdef":
            api.create(PODS, pod(name))
        token = api.get(PODS, limit=2)["metadata"]["continue"]
        for name in "ghijklmnop":
            api.create(PODS, pod(name))
        page = api.get(PODS, **{"continue": token, "limit": 2})
        assert names(page) == ["c", "d"], "a list that goes on needs no history"
        api.call("POST", "/_oarlock/faults", {"action": "cutHistory", "resources": ["pods"]})
        code, status = api.call("GET", PODS, **{"continue": token, "limit": 2})
        assert (code, status["reason"]) == (410, "Expired")
        assert "The provided continue parameter is too old" in status["message"]
        rest = api.get(PODS, **{"continue": status["metadata"]["continue"], "limit": 100})
        assert names(rest) == list("cdefghijklmnop")


def test_resource_version_semantics(api: Api) -> None:
    api.create(PODS, pod("a"))
    then = api.get(PODS)["metadata"]["resourceVersion"]
    api.create(PODS, pod("b"))
    api.delete(f"{PODS}/a")
    assert names(api.get(PODS)) == names(api.get(PODS, resourceVersion=0)) == ["b"]
    assert names(api.get(PODS, resourceVersion=then, resourceVersionMatch="NotOlderThan")) == ["b"]
    exact = api.get(PODS, resourceVersion=then, resourceVersionMatch="Exact")
    assert (names(exact), exact["metadata"]["resourceVersion"]) == (["a"], then)


BAD: list[Any] = [
    pytest.param({"resourceVersion": "x"}, 400, "BadRequest", id="not a number"),
    pytest.param({"resourceVersion": 10**6}, 504, "Timeout", id="not reached yet"),
    pytest.param({"resourceVersionMatch": "Exact"}, 422, "Invalid", id="match without version"),
    pytest.param({"resourceVersion": 5, "resourceVersionMatch": "Maybe"}, 422, "Invalid", id="unknown match"),
    pytest.param({"resourceVersion": 0, "resourceVersionMatch": "Exact"}, 422, "Invalid", id="exactly zero"),
    pytest.param({"continue": "rubbish"}, 400, "BadRequest", id="bad token"),
    pytest.param({"continue": "e30", "resourceVersion": 3}, 400, "BadRequest", id="token and version"),
    pytest.param({"limit": "many"}, 400, "BadRequest", id="bad limit"),
    pytest.param({"resourceVersion": 1, "resourceVersionMatch": "Exact"}, 410, "Expired", id="too old"),
]


@pytest.mark.parametrize(("params", "code", "reason"), BAD)
def test_lists_that_cannot_be_had(params: dict[str, Any], code: int, reason: str) -> None:
    with running(quick(history_events_max=1)) as api:
        for name in "abc":
            api.create(PODS, pod(name))
        got, status = api.call("GET", PODS, **params)
        assert (got, status["reason"]) == (code, reason)


def test_all_namespaces(api: Api) -> None:
    api.create(PODS, pod("a"))
    api.create("/api/v1/namespaces/kube-system/pods", pod("b"))
    assert names(api.get("/api/v1/pods")) == ["a", "b"]
    assert api.get("/api/v1/pods")["kind"] == "PodList"
    assert names(api.get("/api/v1/namespaces/nowhere/pods")) == []


def table(api: Api, path: str, **params: Any) -> Any:
    code, body = api.raw("GET", with_params(path, params), headers={"Accept": TABLE})
    assert code == 200, body
    return json.loads(body)


def test_a_table_of_sets(api: Api) -> None:
    api.create(SETS, replicaset())
    api.clock.now_s += 200
    shown = table(api, SETS)
    assert (shown["kind"], shown["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    wide = [(c["name"], c["priority"]) for c in shown["columnDefinitions"]]
    assert wide == [
        ("Name", 0),
        ("Desired", 0),
        ("Current", 0),
        ("Ready", 0),
        ("Age", 0),
        ("Containers", 1),
        ("Images", 1),
        ("Selector", 1),
    ]
    assert shown["rows"][0]["cells"] == ["web", 3, 0, 0, "3m20s", "c", "nginx", "app=web"]
    assert shown["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in shown["rows"][0]["object"]
    assert table(api, SETS, includeObject="Object")["rows"][0]["object"]["spec"]["replicas"] == 3
    assert "object" not in table(api, f"{SETS}/web", includeObject="None")["rows"][0]
    assert api.raw("GET", f"{SETS}?includeObject=Half", headers={"Accept": TABLE})[0] == 400


def test_tables_are_paged_too(api: Api) -> None:
    for name in "abc":
        api.create(PODS, pod(name))
    first = table(api, PODS, limit=2)
    rest = table(api, PODS, limit=2, **{"continue": first["metadata"]["continue"]})
    assert [row["cells"][0] for row in first["rows"] + rest["rows"]] == ["a", "b", "c"]


def test_a_list_may_be_gone_on_with_for_five_minutes() -> None:
    store, snapshots = store_with(), Snapshots()
    key, listing = ("Pod", None, 7), store.sorted("Pod")
    snapshots.keep(key, listing, 100.0)
    snapshots.keep(key, listing, 100.0 + SNAPSHOT_S / 2)
    assert snapshots.get(key, 99.0 + SNAPSHOT_S) is listing
    assert snapshots.get(key, 100.0 + SNAPSHOT_S) is None, "counted from its first page"
    assert snapshots.get(("Pod", None, 8), 100.0) is None


def test_later_pages_do_not_sort_everything_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    store, snapshots = store_with(), Snapshots()
    for number in range(50):
        add(store, "Pod", f"p{number:02d}")
    asked = []
    sorted_by_store = store.sorted

    def counted(kind: str, namespace: str | None = None) -> Listing:
        asked.append(kind)
        return sorted_by_store(kind, namespace)

    monkeypatch.setattr(store, "sorted", counted)
    found: list[str] = []
    params = {"limit": "3"}
    while True:
        page = list_page(store, snapshots, KINDS["Pod"], "default", None, params)
        found += [stored.obj["metadata"]["name"] for stored in page.items]
        if not page.meta.get("continue"):
            break
        params = {"limit": "3", "continue": page.meta["continue"]}
        store.remove("Pod", "default", f"p{len(found):02d}")
    assert (found, asked) == ([f"p{number:02d}" for number in range(50)], ["Pod"])
