"""The kubelet: from bound to ready in one write, delays, ends, failures, nodes that are gone. Time is given."""

from __future__ import annotations

import re
from typing import Any

import pytest

from oarlock.sandbox.nodes.evictions import Evictions
from oarlock.sandbox.nodes.kubelet.known_pod import Actions
from oarlock.sandbox.nodes.kubelet.kubelet import Kubelet
from oarlock.sandbox.nodes.settings import NodeSettings
from oarlock.sandbox.nodes.timers import Timers

Obj = dict[str, Any]

AT = "2027-01-01T00:00:00Z"
NODE = {
    "metadata": {"name": "n"},
    "status": {"addresses": [{"type": "InternalIP", "address": "192.168.0.7"}]},
}


def kubelet(**settings: Any) -> Kubelet:
    made = Kubelet(NodeSettings(**settings))
    made.node_changed(NODE, 0)
    return made


def pod(annotations: Obj | None = None, status: Obj | None = None, meta: Obj | None = None, **spec: Any) -> Obj:
    return {
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "annotations": annotations or {}, **(meta or {})},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], **spec},
        "status": status or {"phase": "Pending"},
    }


def leaving(grace_s: int = 30, finalizers: list[str] | None = None, **more: Any) -> Obj:
    meta: Obj = {"deletionTimestamp": AT, "deletionGracePeriodSeconds": grace_s}
    if finalizers:
        meta["finalizers"] = finalizers
    return pod(meta=meta, **more)


def only(actions: Actions) -> Obj:
    assert len(actions.statuses) == 1
    assert actions.removals == []
    return actions.statuses[0][1]


def conditions(status: Obj) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in status["conditions"]}


def applied(before: Obj, status: Obj) -> Obj:
    """The pod as the API would hand it back."""
    return {**before, "status": {**before["status"], **status}}


def test_one_write_from_bound_to_ready() -> None:
    k = kubelet()
    k.pod_changed(pod(initContainers=[{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]), 0)
    status = only(k.due(0, AT))
    assert status["phase"] == "Running"
    assert conditions(status) == {"Initialized": "True", "Ready": "True", "ContainersReady": "True"}
    assert (status["hostIP"], status["startTime"]) == ("192.168.0.7", AT)
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    (container,) = status["containerStatuses"]
    assert container["ready"] is True
    assert container["state"] == {"running": {"startedAt": AT}}
    assert [list(c["state"]) for c in status["initContainerStatuses"]] == [["terminated"], ["running"]]
    assert k.due(1e9, AT) == Actions(), "nothing more is to come"
    assert k.next_ms() is None


def test_pods_have_addresses_of_their_own_unless_they_share_the_hosts() -> None:
    k = kubelet()
    for uid in ("a", "b"):
        k.pod_changed(pod(meta={"uid": uid}), 0)
    k.pod_changed(pod(meta={"uid": "c"}, hostNetwork=True), 0)
    ips = [status["podIP"] for _, status in k.due(0, AT).statuses]
    assert len(set(ips)) == 3
    assert ips[2] == "192.168.0.7"


def test_a_pod_without_a_node_is_not_ours() -> None:
    k = kubelet()
    k.pod_changed(pod(nodeName=""), 0)
    assert k.due(1e9, AT) == Actions()


@pytest.mark.parametrize(
    ("settings", "annotations", "ready_ms"),
    [
        ({"ready_ms": 100}, {}, 100),
        ({"ready_ms": 100}, {"oarlock.io/sim-ready-after-ms": "7"}, 7),
        ({"ready_ms": 100}, {"oarlock.io/sim-ready-after-ms": "soon"}, 100),
        ({}, {"oarlock.io/sim-ready-after-ms": "50"}, 50),
    ],
)
def test_ready_after_a_delay(settings: Obj, annotations: Obj, ready_ms: float) -> None:
    k = kubelet(**settings)
    before = pod(annotations)
    k.pod_changed(before, 0)
    first = only(k.due(0, AT))
    assert conditions(first) == {"Initialized": "True", "Ready": "False", "ContainersReady": "False"}
    assert first["conditions"][1]["message"] == "containers with unready status: [c]"
    k.pod_changed(applied(before, first), 1)
    assert k.next_ms() == ready_ms
    assert k.due(ready_ms - 1, AT) == Actions()
    second = only(k.due(ready_ms, AT))
    assert conditions(second) == {"Ready": "True", "ContainersReady": "True"}
    assert second["containerStatuses"][0]["ready"] is True


def test_a_pod_is_ready_before_its_start_has_come_back() -> None:
    """What comes meanwhile is of before it."""
    k = kubelet(ready_ms=100)
    before = pod()
    k.pod_changed(before, 0)
    first = only(k.due(0, AT))
    k.pod_changed(pod(meta={"labels": {"a": "b"}}), 50)
    second = only(k.due(100, AT))
    assert second["containerStatuses"] == [{**each, "ready": True} for each in first["containerStatuses"]]
    k.pod_changed(applied(before, {**first, "containerStatuses": []}), 150)
    k.fail("u", "Lost")
    assert only(k.due(150, AT))["containerStatuses"] == [], "what has come is what counts"


def test_jitter_is_drawn_with_the_seed() -> None:
    def moments(seed: int) -> list[float]:
        k = kubelet(ready_ms=100, ready_jitter_ms=50, seed=seed)
        for i in range(20):
            k.pod_changed(pod(meta={"uid": str(i)}), 0)
        k.due(0, AT)
        return sorted(due for due, _, _ in k._timers._heap)

    assert moments(1) == moments(1)
    assert moments(1) != moments(2)
    assert all(100 <= moment <= 150 for moment in moments(1))


def test_never_ready_and_ready_after_all_and_unready_again() -> None:
    k = kubelet()
    never = {"oarlock.io/sim-never-ready": "true"}
    k.pod_changed(pod(never), 0)
    status = only(k.due(0, AT))
    assert conditions(status)["Ready"] == "False"
    k.pod_changed(applied(pod(never), status), 1)
    assert k.due(1e9, AT) == Actions()
    k.pod_changed(applied(pod(), status), 2)
    status = {**status, **only(k.due(2, AT))}
    assert conditions(status)["Ready"] == "True"
    k.pod_changed(applied(pod(never), status), 3)
    assert conditions(only(k.due(3, AT)))["Ready"] == "False"


@pytest.mark.parametrize(
    ("terminate_ms", "grace_s", "end_ms"),
    [(0, 30, 10), (500, 30, 510), (5000, 1, 1010), (5000, 0, 10)],
)
def test_a_deleted_pod_ends_within_its_grace(terminate_ms: float, grace_s: int, end_ms: float) -> None:
    k = kubelet(terminate_ms=terminate_ms)
    k.pod_changed(pod(), 0)
    k.due(0, AT)
    k.pod_changed(leaving(grace_s), 10)
    if end_ms > 10:
        assert k.due(end_ms - 1, AT) == Actions()
    actions = k.due(end_ms, AT)
    assert [ref.uid for ref in actions.removals] == ["u"]
    assert actions.statuses == []


def test_a_second_delete_may_shorten_the_end() -> None:
    k = kubelet(terminate_ms=60_000)
    k.pod_changed(leaving(30), 0)
    k.pod_changed(leaving(1), 100)
    assert len(k.due(1100, AT).removals) == 1


def test_a_pod_held_by_a_finalizer_leaves_word_how_it_ended() -> None:
    k = kubelet()
    k.pod_changed(leaving(finalizers=["example.com/hold"]), 0)
    actions = k.due(0, AT)
    assert [status["phase"] for _, status in actions.statuses] == ["Succeeded"]
    assert len(actions.removals) == 1


def test_a_pod_deleted_before_it_started_does_not_start() -> None:
    k = kubelet(terminate_ms=1000)
    k.pod_changed(pod(), 0)
    k.pod_changed(leaving(), 0)
    assert k.due(0, AT) == Actions()
    assert len(k.due(1000, AT).removals) == 1


def test_a_pod_deleted_before_it_was_ready_does_not_become_so() -> None:
    k = kubelet(ready_ms=100, terminate_ms=1000)
    k.pod_changed(pod(), 0)
    k.due(0, AT)
    k.pod_changed(leaving(), 50)
    assert k.due(100, AT) == Actions()


@pytest.mark.parametrize(("value", "reason"), [("true", "Failed"), ("", "Failed"), ("OutOfMemory", "OutOfMemory")])
def test_a_pod_fails_on_request(value: str, reason: str) -> None:
    k = kubelet()
    running = applied(pod(), {"phase": "Running"})
    k.pod_changed(running, 0)
    k.pod_changed({**running, "metadata": {**running["metadata"], "annotations": {"oarlock.io/sim-fail": value}}}, 1)
    assert k.next_ms() == 0.0
    status = only(k.due(1, AT))
    assert (status["phase"], status["reason"]) == ("Failed", reason)
    assert conditions(status) == {"Ready": "False", "ContainersReady": "False"}
    assert k.due(2, AT) == Actions()


def test_a_pod_made_to_fail_never_runs() -> None:
    k = kubelet()
    k.pod_changed(pod({"oarlock.io/sim-fail": "true"}), 0)
    assert only(k.due(0, AT))["phase"] == "Failed"


def test_fail_by_call() -> None:
    k = kubelet()
    assert k.fail("u", "Evicted") is False
    before = pod()
    k.pod_changed(before, 0)
    k.pod_changed(applied(before, only(k.due(0, AT))), 0)
    assert k.fail("u", "Evicted", "too much") is True
    status = only(k.due(0, AT))
    assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "Evicted"
    assert (status["reason"], status["message"]) == ("Evicted", "too much")
    assert k.fail("u", "Evicted") is False, "it is over"


def test_a_failed_pod_does_not_fail_again() -> None:
    k = kubelet()
    k.pod_changed(pod({"oarlock.io/sim-fail": "true"}, status={"phase": "Failed"}), 0)
    assert k.due(0, AT) == Actions()


def test_a_pod_that_is_gone_does_nothing_more() -> None:
    k = kubelet(ready_ms=100)
    k.pod_changed(pod(), 0)
    k.due(0, AT)
    k.fail("u", "Evicted")
    k.pod_gone("u")
    k.pod_gone("u")
    assert k.due(1e9, AT) == Actions()


def test_a_failed_pod_that_is_deleted_goes_at_once() -> None:
    k = kubelet(terminate_ms=5000)
    k.pod_changed(pod(status={"phase": "Failed"}), 0)
    assert k.due(0, AT) == Actions()
    k.pod_changed(leaving(status={"phase": "Failed"}), 1)
    assert len(k.due(1, AT).removals) == 1


def test_a_pod_on_a_node_that_never_was_is_given_up() -> None:
    k = kubelet(gone_node_ms=100)
    k.pod_changed(pod(nodeName="ghost"), 0)
    assert k.due(99, AT) == Actions()
    actions = k.due(100, AT)
    ((_, status),) = actions.statuses
    assert status["phase"] == "Failed"
    assert conditions(status)["DisruptionTarget"] == "True"
    assert len(actions.removals) == 1


def test_a_node_that_comes_in_time_runs_its_pods() -> None:
    k = Kubelet(NodeSettings(gone_node_ms=100))
    k.pod_changed(pod(), 0)
    k.node_changed(NODE, 50)
    assert only(k.due(50, AT))["phase"] == "Running"
    assert k.due(100, AT) == Actions()


def test_the_pods_of_a_node_that_goes_are_given_up() -> None:
    k = kubelet(gone_node_ms=100)
    k.pod_changed(pod(), 0)
    k.due(0, AT)
    k.node_gone("n", 10)
    assert len(k.due(110, AT).removals) == 1
    k.pod_gone("u")
    assert list(k.pods_on("n")) == []


def test_pods_that_ran_before_we_looked_are_taken_over() -> None:
    k = kubelet()
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    k.pod_changed(pod(status=ready), 0)
    assert k.due(0, AT) == Actions()
    k.pod_changed(pod({"oarlock.io/sim-never-ready": "true"}, status={**ready, "containerStatuses": []}), 1)
    assert conditions(only(k.due(1, AT)))["Ready"] == "False"


def test_pods_that_ran_unready_before_we_looked_become_ready() -> None:
    k = kubelet()
    unready = [{"type": "Ready", "status": "False"}, {"type": "Initialized", "status": "True"}]
    k.pod_changed(pod(status={"phase": "Running", "conditions": unready}), 0)
    assert conditions(only(k.due(0, AT)))["Ready"] == "True"


def test_a_mind_changed_twice_is_one_write() -> None:
    k = kubelet(ready_ms=100)
    never = {"oarlock.io/sim-never-ready": "true"}
    k.pod_changed(pod(), 0)
    status = only(k.due(0, AT))
    k.pod_changed(applied(pod(never), status), 10)
    k.pod_changed(applied(pod(), status), 20)
    assert k.due(119, AT) == Actions(), "the delay began anew"
    assert conditions(only(k.due(1e9, AT)))["Ready"] == "True"


def node(ready: str = "True", name: str = "n", **annotations: str) -> Obj:
    status = {**NODE["status"], "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": {"name": name, "annotations": annotations}, "status": status}


def test_pods_are_ready_only_on_nodes_that_are() -> None:
    k = kubelet()
    k.pod_changed(pod(), 0)
    running = applied(pod(), only(k.due(0, AT)))
    k.pod_changed(running, 0)
    for state, ready in (("False", "False"), ("Unknown", None), ("True", "True"), ("Unknown", "False")):
        k.node_changed(node(state), 10)
        actions = k.due(10, AT)
        if ready is None:
            assert actions == Actions(), "they are unready already"
        else:
            assert conditions(only(actions))["Ready"] == ready
        k.node_changed(node(state), 11)
        assert k.due(11, AT) == Actions(), "nothing has changed"


def test_a_pod_that_comes_to_a_node_that_is_not_ready_runs_and_becomes_ready_with_it() -> None:
    k = kubelet()
    k.node_changed(node("False"), 0)
    k.pod_changed(pod(), 0)
    status = only(k.due(0, AT))
    assert status["phase"] == "Running"
    assert conditions(status)["Ready"] == "False"
    k.pod_changed(applied(pod(), status), 0)
    assert k.due(1e6, AT) == Actions()
    k.node_changed(node("True"), 2e6)
    assert conditions(only(k.due(2e6, AT)))["Ready"] == "True"


def test_a_pod_that_is_to_be_unready_stays_so_when_its_node_comes_back() -> None:
    k = kubelet(ready_ms=500)
    never = pod({"oarlock.io/sim-never-ready": "true"})
    for entry in (never, pod(meta={"uid": "later"})):
        k.pod_changed(entry, 0)
    assert len(k.due(0, AT).statuses) == 2
    k.node_changed(node("False"), 100)
    k.node_changed(node("True"), 200)
    assert k.due(499, AT) == Actions()
    actions = k.due(1e6, AT)
    assert [ref.uid for ref, _ in actions.statuses] == ["later"]


def test_on_a_node_out_of_reach_nothing_starts_or_ends_until_it_is_back() -> None:
    k = kubelet()
    k.pod_changed(pod(), 0)
    k.due(0, AT)
    k.node_changed(node("Unknown"), 10)
    assert conditions(only(k.due(10, AT)))["Ready"] == "False"
    k.pod_changed(leaving(), 20)
    k.pod_changed(pod(meta={"uid": "new", "name": "new"}), 20)
    assert k.due(1e6, AT) == Actions()
    assert k.next_ms() is None
    k.node_changed(node("False"), 2e6)
    actions = k.due(2e6, AT)
    assert [ref.uid for ref in actions.removals] == ["u"]
    assert [(ref.uid, status["phase"]) for ref, status in actions.statuses] == [("new", "Running")]


def test_the_pods_of_a_node_out_of_reach_that_is_removed_are_given_up() -> None:
    k = kubelet(gone_node_ms=100)
    k.node_changed(node("Unknown"), 0)
    k.pod_changed(leaving(), 0)
    k.pod_changed(pod(meta={"uid": "new"}), 0)
    assert k.due(0, AT) == Actions()
    k.node_gone("n", 10)
    assert {ref.uid for ref in k.due(110, AT).removals} == {"u", "new"}


def test_a_node_that_comes_back_healthy_under_its_old_name_has_ready_pods() -> None:
    k = kubelet(gone_node_ms=1000)
    k.pod_changed(pod(), 0)
    k.due(0, AT)
    k.node_changed(node("False"), 1)
    k.due(1, AT)
    k.node_gone("n", 2)
    k.node_changed(node("True"), 3)
    assert conditions(only(k.due(3, AT)))["Ready"] == "True"
    assert k.due(1e6, AT) == Actions()


@pytest.mark.parametrize(("value", "reason"), [("OutOfcpu", "OutOfcpu"), ("true", "Rejected")])
def test_a_kubelet_that_takes_no_pods(value: str, reason: str) -> None:
    k = kubelet()
    k.pod_changed(pod(meta={"uid": "before"}), 0)
    k.due(0, AT)
    k.node_changed(node(**{"oarlock.io/sim-reject": value}), 1)
    k.pod_changed(pod(), 1)
    ((ref, status),) = k.due(1, AT).statuses
    assert (ref.uid, status["phase"], status["reason"]) == ("u", "Failed", reason)
    k.pod_changed(pod(status={**status}), 2)
    k.node_changed(node(), 3)
    assert k.due(1e6, AT) == Actions(), "what has failed stays so"


def test_so_many_at_a_time() -> None:
    k = kubelet()
    for i in range(10):
        k.pod_changed(pod(meta={"uid": str(i)}), 0)
    assert [len(k.due(0, AT, 4).statuses) for _ in range(4)] == [4, 4, 2, 0]


def test_timers_keep_their_order() -> None:
    timers: Timers[str] = Timers()
    for due_ms, thing in ((5, "c"), (1, "a"), (5, "d"), (2, "b")):
        timers.add(due_ms, thing)
    assert (timers.next_ms(), len(timers)) == (1, 4)
    assert timers.pop_due(0, 9) == []
    assert timers.pop_due(5, 3) == ["a", "b", "c"]
    assert timers.pop_due(5, 3) == ["d"]
    assert timers.next_ms() is None


def tainted(*taints: Obj) -> Obj:
    return {"metadata": {"name": "n"}, "spec": {"taints": list(taints)}}


TAINT = {"key": "k", "effect": "NoExecute"}
FOR_A_WHILE = [{"key": "k", "operator": "Exists", "tolerationSeconds": 2}]


def test_a_no_execute_taint_drives_out_who_does_not_tolerate_it() -> None:
    evictions = Evictions()
    tolerant = pod(meta={"uid": "t"}, tolerations=[{"operator": "Exists"}])
    patient = pod(meta={"uid": "w"}, tolerations=FOR_A_WHILE)
    evictions.node_changed(tainted(TAINT), [pod(), tolerant, patient], 0)
    assert [ref.uid for ref in evictions.due(0)] == ["u"]
    assert evictions.next_ms() == 2000
    assert [ref.uid for ref in evictions.due(2000)] == ["w"]
    assert evictions.next_ms() is None


def test_other_effects_drive_nobody_out() -> None:
    evictions = Evictions()
    evictions.node_changed(tainted({"key": "k", "effect": "NoSchedule"}), [pod()], 0)
    assert evictions.due(1e9) == []


def test_a_taint_taken_back_in_time() -> None:
    evictions = Evictions()
    patient = pod(tolerations=FOR_A_WHILE)
    evictions.node_changed(tainted(TAINT), [patient], 0)
    evictions.node_changed(tainted(), [patient], 1000)
    assert evictions.due(2000) == []


def test_a_pod_that_comes_to_a_tainted_node_leaves_again() -> None:
    evictions = Evictions()
    evictions.node_changed(tainted(TAINT), [], 0)
    evictions.pod_changed(pod(), 5)
    assert [ref.uid for ref in evictions.due(5)] == ["u"]


@pytest.mark.parametrize("gone", [True, False])
def test_who_is_leaving_or_gone_is_not_driven_out(gone: bool) -> None:
    evictions = Evictions()
    evictions.node_changed(tainted(TAINT), [pod(tolerations=FOR_A_WHILE)], 0)
    if gone:
        evictions.pod_gone("u")
    else:
        evictions.pod_changed(leaving(), 1)
    assert evictions.due(2000) == []


def test_a_node_without_its_taint_is_a_node_like_any_other() -> None:
    evictions = Evictions()
    evictions.node_changed(tainted(TAINT), [], 0)
    evictions.node_changed(tainted(), [], 1)
    evictions.pod_changed(pod(), 2)
    evictions.node_changed(tainted(TAINT), [], 3)
    evictions.node_gone("n")
    evictions.pod_changed(pod(), 4)
    assert evictions.due(1e9) == []


def test_the_shorter_patience_holds() -> None:
    evictions = Evictions()
    other = {"key": "l", "effect": "NoExecute"}
    patient = pod(tolerations=[*FOR_A_WHILE, {"key": "l", "operator": "Exists", "tolerationSeconds": 1}])
    evictions.node_changed(tainted(TAINT), [patient], 0)
    evictions.node_changed(tainted(TAINT, other), [patient], 500)
    assert [ref.uid for ref in evictions.due(1500)] == ["u"]
    assert evictions.due(1e9) == []


BACK_OFF_S = [10, 20, 40, 80, 160, 300, 300]


def why(status: Obj) -> list[str]:
    """Of each container: its reason for waiting, or what else it does."""
    found = []
    for container in (*status.get("initContainerStatuses", ()), *status["containerStatuses"]):
        ((state, details),) = container["state"].items()
        found.append(details["reason"] if state == "waiting" else state)
    return found


def test_an_image_that_cannot_be_pulled() -> None:
    k = kubelet()
    before = pod(containers=[{"name": "c", "image": "foo:non-existent"}])
    k.pod_changed(before, 0)
    now_ms = 0.0
    addresses = set()
    for pause_s in BACK_OFF_S:
        failed = only(k.due(now_ms, AT))
        assert (failed["phase"], why(failed)) == ("Pending", ["ErrImagePull"])
        assert conditions(failed) == {"Initialized": "True", "Ready": "False", "ContainersReady": "False"}
        k.pod_changed(before := applied(before, failed), now_ms)
        assert k.due(now_ms + 999, AT) == Actions()
        backing_off = only(k.due(now_ms + 1000, AT))
        (container,) = backing_off["containerStatuses"]
        assert container["state"]["waiting"] == {
            "reason": "ImagePullBackOff",
            "message": 'Back-off pulling image "foo:non-existent"',
        }
        assert (container["ready"], container["started"], container["imageID"]) == (False, False, "")
        k.pod_changed(before := applied(before, backing_off), now_ms + 1000)
        now_ms += 1000 + pause_s * 1000
        assert k.due(now_ms - 1, AT) == Actions()
        addresses |= {failed["podIP"], backing_off["podIP"]}
    assert len(addresses) == 1


IMAGES: list[tuple[Obj, str, list[str]]] = [
    ({}, "webserver:404", ["ErrImagePull"]),
    ({}, "gcr.io/google_samples/gb-redisslave:nonexistent", ["ErrImagePull"]),
    ({}, "gcr.io/webserver:4040", ["running"]),
    ({"unpullable": None}, "foo:non-existent", ["running"]),
    ({"unpullable": re.compile("^bad/")}, "foo:non-existent", ["running"]),
    ({"unpullable": re.compile("^bad/")}, "bad/x:1", ["ErrImagePull"]),
]


@pytest.mark.parametrize(("settings", "image", "states"), IMAGES)
def test_which_images_cannot_be_pulled(settings: Obj, image: str, states: list[str]) -> None:
    k = kubelet(**settings)
    k.pod_changed(pod(containers=[{"name": "c", "image": image}]), 0)
    assert why(only(k.due(0, AT))) == states


BAD = "foo:non-existent"
SEVERAL: list[tuple[list[str], list[str], list[str], str]] = [
    ([], [BAD, "i"], ["ErrImagePull", "running"], "True"),
    ([BAD], ["i", BAD], ["ErrImagePull", "PodInitializing", "ErrImagePull"], "False"),
    (["i"], [BAD], ["terminated", "ErrImagePull"], "True"),
]


@pytest.mark.parametrize(("inits", "images", "states", "initialized"), SEVERAL)
def test_one_image_of_several(inits: list[str], images: list[str], states: list[str], initialized: str) -> None:
    k = kubelet()
    containers = [{"name": f"c{n}", "image": image} for n, image in enumerate(images)]
    init = [{"name": f"i{n}", "image": image} for n, image in enumerate(inits)]
    k.pod_changed(pod(containers=containers, initContainers=init), 0)
    status = only(k.due(0, AT))
    assert (why(status), status["phase"], conditions(status)["Initialized"]) == (states, "Pending", initialized)


def test_a_pod_that_is_given_another_image_starts_at_once() -> None:
    k = kubelet()
    before = pod(containers=[{"name": "c", "image": BAD}])
    k.pod_changed(before, 0)
    waits = applied(before, only(k.due(0, AT)))
    k.pod_changed(waits, 1)
    k.pod_changed(waits | {"spec": {**waits["spec"], "containers": [{"name": "c", "image": "i"}]}}, 500)
    status = only(k.due(500, AT))
    assert (why(status), conditions(status)["Ready"]) == (["running"], "True")
    assert k.due(1e9, AT) == Actions(), "it starts once"


def test_a_pod_without_its_image_is_looked_at_once_a_pause_whatever_its_node_does() -> None:
    k = kubelet()
    k.pod_changed(pod(containers=[{"name": "c", "image": BAD}]), 0)
    k.due(0, AT)
    k.node_gone("n", 100)
    k.node_changed(NODE, 200)
    assert k.due(999, AT) == Actions()
    assert why(only(k.due(1000, AT))) == ["ImagePullBackOff"]


def test_a_pod_without_its_image_ends_and_fails_as_any() -> None:
    k = kubelet()
    k.pod_changed(pod(containers=[{"name": "c", "image": BAD}]), 0)
    k.due(0, AT)
    k.pod_changed(leaving(containers=[{"name": "c", "image": BAD}]), 1)
    actions = k.due(1, AT)
    assert ([ref.uid for ref in actions.removals], actions.statuses) == (["u"], [])
    assert k.due(1e9, AT) == Actions()
