"""Pods of one template that differ in where they are to run: the shared work shows in nothing but time."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.sandbox.apiserver import defaulting
from oarlock.sandbox.apiserver.defaulting.pod_spec import default_pod_spec
from oarlock.sandbox.apiserver.defaulting.spec_memo import SpecMemo
from oarlock.sandbox.apiserver.validation.pods.pod_spec import pod_spec_errors, uncached_errors
from tests.sandbox.api_harness import PODS, Api, pod

Obj = dict[str, Any]


def affinity(*nodes: str, key: str = "metadata.name") -> Obj:
    terms = [{"matchFields": [{"key": key, "operator": "In", "values": list(nodes)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def spec(**own: Any) -> Obj:
    return {
        "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}],
        "volumes": [{"name": "v"}],
        **own,
    }


PLACES: list[Obj] = [
    {},
    {"affinity": affinity("a")},
    {"affinity": affinity("b")},
    {"nodeName": "a"},
    {"nodeName": "b", "affinity": affinity("b")},
    {"affinity": {}},
    {"affinity": affinity("a"), "hostNetwork": True},
]


@pytest.mark.parametrize("backwards", [False, True])
def test_each_gets_the_defaults_it_would_get_alone(backwards: bool) -> None:
    memo = SpecMemo()
    for place in reversed(PLACES) if backwards else PLACES:
        given = spec(**place)
        assert memo.defaulted(given) == default_pod_spec(given)
        assert given == spec(**place), "what was handed in was changed"


def test_equal_specs_are_one_object_and_others_share_their_parts() -> None:
    memo = SpecMemo()
    first, again, other = (memo.defaulted(spec(affinity=affinity(node))) for node in "aab")
    assert first is again
    assert other is not first
    assert other["containers"] is first["containers"]
    assert memo.defaulted(other) is other


BAD_PLACES: list[Obj] = [
    {"nodeName": "A_b"},
    {"affinity": affinity("a", "b")},
    {"affinity": affinity("a", key="metadata.uid")},
    {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
    {"nodeName": "A_b", "affinity": affinity("a", "b"), "volumes": [{"name": "A_b", "emptyDir": {}}]},
]


@pytest.mark.parametrize("bad", BAD_PLACES)
def test_a_bad_place_is_found_though_the_rest_is_known_to_be_good(bad: Obj) -> None:
    for place in PLACES:
        assert pod_spec_errors(default_pod_spec(spec(**place)), "spec") == []
    whole = default_pod_spec(spec(**bad))
    told = [str(error) for error in pod_spec_errors(whole, "spec")]
    assert told == [str(error) for error in uncached_errors(whole, "spec")] != []


def test_a_bad_rest_is_found_for_every_place() -> None:
    for place in PLACES[:5]:
        whole = default_pod_spec(spec(**place, restartPolicy="Sometimes"))
        assert pod_spec_errors(whole, "spec") != []


def test_a_write_of_status_keeps_what_defaults_filled_in(api: Api) -> None:
    """Also where the patch brings nulls and the spec is not looked at."""
    made = api.create(PODS, pod("a", affinity=affinity("n1")))
    patch = {"status": {"phase": "Running", "message": None, "conditions": [{"type": "Ready", "reason": None}]}}
    written = api.patch(f"{PODS}/a/status", patch)
    assert written["spec"] == made["spec"]
    assert (written["status"]["phase"], "message" in written["status"]) == ("Running", False)
    assert written["status"]["conditions"] == [{"type": "Ready"}]


def test_defaults_against_the_object_that_is_replaced() -> None:
    old = defaulting.apply("Pod", {"metadata": {"name": "a"}, "spec": spec()})
    kept = {**old, "metadata": {"name": "a", "labels": None}, "status": None}
    assert defaulting.apply("Pod", kept, old) == {"metadata": {"name": "a"}, "spec": old["spec"]}
    assert defaulting.apply("Pod", kept, old)["spec"] is old["spec"]
    changed = {**old, "spec": spec(hostNetwork=True)}
    assert defaulting.apply("Pod", changed, old) == defaulting.apply("Pod", changed)
