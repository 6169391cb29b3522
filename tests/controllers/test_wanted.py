"""From what is wanted and what is there to what is to be done."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from oarlock.controllers.objects.model import OwnerRef
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.wanted import (
    APPLIED,
    CHANGED,
    Live,
    Wanted,
    WantedChild,
    changes,
    stamped,
    status_change,
    wanted_child,
)

OWNER = {"apiVersion": "example.com/v1", "kind": "Website", "name": "web", "uid": "o1", "controller": True}
MAPS = "configmaps.v1"


def child(name: str = "a", **data: str) -> WantedChild:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"v": "1"}}
    return wanted_child(MAPS, obj, namespace="shop", owner_reference=OWNER, controller="site")


def live(of: WantedChild, *, owner: str = "o1", deleting_ms: int = 0, **data: str) -> Live:
    body: dict[str, Any] = msgspec.json.decode(of.body)
    body["metadata"]["creationTimestamp"] = "2026-01-05T08:00:00Z"
    body["data"] |= data
    refs = (OwnerRef("example.com/v1", "Website", "web", owner, True),) if owner else ()
    name = of.name
    whole = Whole("shop", name, f"u-{name}", owner_refs=refs, deleting_ms=deleting_ms, body=msgspec.json.encode(body))
    return Live(of.resource, f"rv-{name}", whole)


A, B = child("a"), child("b")
CASES: dict[str, tuple[list[WantedChild], list[Live], tuple[list[str], list[str], list[str]]]] = {
    "nothing": ([], [], ([], [], [])),
    "it is as it was wanted": ([A], [live(A)], ([], [], [])),
    "it is not there": ([A, B], [live(A)], (["b"], [], [])),
    "it is not wanted": ([A], [live(A), live(B)], ([], [], ["b"])),
    "it was edited": ([A], [live(A, v="2")], ([], ["a"], [])),
    "somebody added to it": ([A], [live(A, w="2")], ([], [], [])),
    "the wish has changed": ([child("a", v="2")], [live(A)], ([], ["a"], [])),
    "something was taken out of the wish": ([child("a", v="1")], [live(child("a", v="1", w="2"))], ([], ["a"], [])),
    "it is being deleted, and wanted": ([A], [live(A, deleting_ms=5)], ([], [], [])),
    "it is being deleted, and not wanted": ([], [live(A, deleting_ms=5)], ([], [], [])),
    "it is another's": ([], [live(A, owner="o2")], ([], [], [])),
    "it is nobody's": ([], [live(A, owner="")], ([], [], [])),
}


@pytest.mark.parametrize("case", CASES)
def test_changes(case: str) -> None:
    wanted, owned, (create, update, delete) = CASES[case]
    found = changes("o1", Wanted(tuple(wanted)), owned, {}, controller="site")
    names = [each.name for each in found.create], [each.child.name for each in found.update]
    assert (*names, [each.obj.name for each in found.delete]) == (create, update, delete)
    assert found.waits == (case == "it is being deleted, and wanted")
    assert found.none == (not (create or update or delete))


def test_what_the_server_made_of_it_counts_as_wanted_until_it_changes_again() -> None:
    settled = {("u-a", A.digest): ((".data.v", '"one"'),)}
    assert changes("o1", Wanted((A,)), [live(A, v="one")], settled, controller="site").none
    assert [
        each.child.name for each in changes("o1", Wanted((A,)), [live(A, v="two")], settled, controller="site").update
    ] == ["a"]


def test_a_child_that_a_delete_may_still_take_is_changed_if_it_is_wanted() -> None:
    assert [each.child for each in changes("o1", Wanted((A,)), [live(A)], {}, {"u-a"}, controller="site").update] == [A]
    assert [each.obj.uid for each in changes("o1", Wanted(), [live(A)], {}, {"u-a"}, controller="site").delete] == [
        "u-a"
    ]


def test_a_wish_is_applied_with_its_owner_and_its_digest() -> None:
    meta = msgspec.json.decode(A.body)["metadata"]
    assert meta == {
        "name": "a",
        "namespace": "shop",
        "annotations": {APPLIED: A.digest},
        "ownerReferences": [OWNER],
    }
    assert child("a", v="1").digest == A.digest != child("a", v="2").digest


def test_the_order_of_a_wish_means_nothing() -> None:
    assert child("a", x="1", y="2").digest == child("a", y="2", x="1").digest


def test_a_child_made_from_a_live_one_has_its_owner_once() -> None:
    obj = msgspec.json.decode(live(A).obj.body)
    again = wanted_child(MAPS, obj, namespace="shop", owner_reference=OWNER, controller="site")
    assert msgspec.json.decode(again.body)["metadata"]["ownerReferences"] == [OWNER]


SECRETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "it is kept as data": ({"stringData": {"a": "ä"}}, {"data": {"a": "w6Q="}}),
    "it wins over data": (
        {"data": {"a": "MQ==", "b": "Mg=="}, "stringData": {"a": "3"}},
        {"data": {"a": "Mw==", "b": "Mg=="}},
    ),
    "an empty one says nothing": ({"stringData": {}}, {"data": {}}),
    "one that is no text is the server's to refuse": ({"stringData": {"a": 1}}, {"stringData": {"a": 1}}),
    "data alone is left": ({"data": {"a": "MQ=="}}, {"data": {"a": "MQ=="}}),
    "another kind may have a field of the name": (
        {"kind": "Vault", "stringData": {"a": "1"}},
        {"kind": "Vault", "stringData": {"a": "1"}},
    ),
}


@pytest.mark.parametrize("case", SECRETS)
def test_the_string_data_of_a_secret(case: str) -> None:
    given, kept = SECRETS[case]
    obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **given}
    body = msgspec.json.decode(
        wanted_child("secrets.v1", obj, namespace="shop", owner_reference=OWNER, controller="site").body
    )
    assert body == {"apiVersion": "v1", "kind": "Secret", "metadata": body["metadata"], **kept}
    assert "stringData" not in obj or obj["stringData"] == given["stringData"]


def test_a_secret_that_was_changed_by_hand_is_updated() -> None:
    obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"v": "1"}}
    wish = wanted_child("secrets.v1", obj, namespace="shop", owner_reference=OWNER, controller="site")
    wanted = Wanted((wish,))
    assert changes("o1", wanted, [live(wish)], {}, controller="site").none
    assert len(changes("o1", wanted, [live(wish, v="Mg==")], {}, controller="site").update) == 1


STATUSES: dict[str, tuple[Any, Any, Any]] = {
    "equal": ({"a": 1}, {"a": 1}, None),
    "both empty": ({}, {}, None),
    "another value": ({"a": 1}, {"a": 2}, {"a": 2}),
    "one more": ({"a": 1}, {"a": 1, "b": 2}, {"b": 2}),
    "one less": ({"a": 1, "b": 2}, {"a": 1}, {"b": None}),
    "deeper": ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1, "y": 3}}, {"a": {"y": 3}}),
    "lists as a whole": ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
    "null is absent": ({}, {"a": None}, None),
}


@pytest.mark.parametrize("case", STATUSES)
def test_status_change(case: str) -> None:
    old, new, patch = STATUSES[case]
    assert status_change(old, new) == patch


def test_a_wish_that_was_made_from_the_live_child_is_the_same_wish() -> None:
    """Else each turn would apply it again, and each apply would wake the next turn."""
    first = child("a")
    again = msgspec.json.decode(live(first).obj.body)
    again["metadata"]["annotations"] |= {CHANGED: "7", "theirs": "stays"}
    second = wanted_child(MAPS, again, namespace="shop", owner_reference=OWNER, controller="site")
    third = wanted_child(
        MAPS, msgspec.json.decode(live(second).obj.body), namespace="shop", owner_reference=OWNER, controller="site"
    )
    assert third.digest == second.digest
    assert third.body == second.body
    annotations = msgspec.json.decode(second.body)["metadata"]["annotations"]
    assert annotations == {"theirs": "stays", APPLIED: second.digest}


def applied_by(controller: str) -> Live:
    wish = wanted_child(
        MAPS, msgspec.json.decode(A.body), namespace="shop", owner_reference=OWNER, controller=controller
    )
    return live(wish)


@pytest.mark.parametrize(
    ("by", "updated", "taken"),
    [
        pytest.param("site", [], [], id="itself"),
        pytest.param("blog", [], [("a", "blog")], id="a controller that is at work too"),
        pytest.param("blo", ["a"], [], id="one that is not known, as before it was renamed"),
        pytest.param("", ["a"], [], id="nobody"),
    ],
)
def test_a_wanted_child_that_somebody_else_applied(by: str, updated: list[str], taken: list[tuple[str, str]]) -> None:
    found = changes(
        "o1", Wanted((A,)), [applied_by(by)], {}, {"u-a"} if taken else (), controller="site", rivals=("blog",)
    )
    assert [each.child.name for each in found.update] == updated
    assert [(child.name, other) for child, other in found.taken] == taken
    assert found.create == found.delete == ()


def test_what_another_controller_or_none_applied_is_not_deleted() -> None:
    """An owner may have several controllers, as a Namespace has."""
    theirs = wanted_child(MAPS, msgspec.json.decode(A.body), namespace="shop", owner_reference=OWNER, controller="si")
    body = msgspec.json.decode(A.body)
    del body["metadata"]["annotations"]
    nobodys = Live(MAPS, "7", msgspec.structs.replace(live(A).obj, body=msgspec.json.encode(body)))
    assert changes("o1", Wanted(), [live(theirs), nobodys], {}, controller="site").none


NOW, BEFORE = "2026-01-05T08:00:00Z", "2026-01-04T08:00:00Z"
OLD_CONDITION = {"type": "Ready", "status": "True", "reason": "A", "lastTransitionTime": BEFORE}
CONDITIONS: dict[str, tuple[Any, Any, Any]] = {
    "a new one": ({}, [{"type": "Ready", "status": "True"}], NOW),
    "the same": ([OLD_CONDITION], [{"type": "Ready", "status": "True", "reason": "A"}], BEFORE),
    "another reason": ([OLD_CONDITION], [{"type": "Ready", "status": "True", "reason": "B"}], BEFORE),
    "another status": ([OLD_CONDITION], [{"type": "Ready", "status": "False", "reason": "A"}], NOW),
    "another type": ([OLD_CONDITION], [{"type": "Sound", "status": "True", "reason": "A"}], NOW),
    "a time of its own": ([OLD_CONDITION], [{"type": "Ready", "status": "True", "lastTransitionTime": "x"}], "x"),
    "a null for the time": ([OLD_CONDITION], [{"type": "Ready", "status": "True", "lastTransitionTime": None}], BEFORE),
    "an old one without a time": ([{"type": "Ready", "status": "True"}], [{"type": "Ready", "status": "True"}], NOW),
    "old ones that are none": (["Ready", {"type": "Ready"}], [{"type": "Ready", "status": "True"}], NOW),
}


@pytest.mark.parametrize("case", CONDITIONS)
def test_when_a_condition_has_changed(case: str) -> None:
    old, (given,), time = CONDITIONS[case]
    new = stamped({"conditions": old, "x": 1}, {"conditions": [given], "y": 2}, NOW)
    assert new == {"conditions": [{**given, "lastTransitionTime": time}], "y": 2}


@pytest.mark.parametrize(
    "status",
    [None, "on", {"a": 1}, {"conditions": None}, {"conditions": ["Ready", {"type": "Ready"}, {"status": "x"}]}],
)
def test_what_is_no_condition_is_left_as_it_is(status: Any) -> None:
    assert stamped({"conditions": [OLD_CONDITION]}, status, NOW) == status
    assert stamped(None, status, NOW) == status
