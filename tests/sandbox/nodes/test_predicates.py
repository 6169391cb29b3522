"""Which nodes a pod may go to, requirement by requirement."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.sandbox.nodes.scheduler.predicates import (
    CORDONED,
    MISMATCH,
    TAINTED,
    evict_after_s,
    matches_node,
    pinned_to,
    tolerates,
    why_not,
)

Obj = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def node(name: str = "n", labels: Obj | None = None, **spec: Any) -> Obj:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def affinity(*terms: Obj) -> Obj:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def expression(key: str, operator: str, *values: str) -> Obj:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def by_name(*names: str, operator: str = "In") -> Obj:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}


LABELS = {"zone": "a", "cores": "8", "empty": ""}


@pytest.mark.parametrize(
    ("spec", "matches"),
    [
        pytest.param({}, True, id="no wish"),
        pytest.param({"affinity": {"podAffinity": {}}}, True, id="affinity to pods only"),
        pytest.param({"nodeSelector": {"zone": "a", "empty": ""}}, True, id="selector"),
        pytest.param({"nodeSelector": {"zone": "b"}}, False, id="selector, another value"),
        pytest.param({"nodeSelector": {"none": ""}}, False, id="selector, absent"),
        pytest.param(affinity(), False, id="no terms"),
        pytest.param(affinity({}), False, id="an empty term"),
        pytest.param(affinity({}, expression("zone", "Exists")), True, id="terms are alternatives"),
        pytest.param(affinity(expression("zone", "In", "a", "b")), True, id="In"),
        pytest.param(affinity(expression("zone", "In", "b")), False, id="In, not"),
        pytest.param(affinity(expression("none", "In", "")), False, id="In, absent"),
        pytest.param(affinity(expression("zone", "NotIn", "b")), True, id="NotIn"),
        pytest.param(affinity(expression("zone", "NotIn", "a")), False, id="NotIn, not"),
        pytest.param(affinity(expression("none", "NotIn", "a")), True, id="NotIn, absent"),
        pytest.param(affinity(expression("empty", "Exists")), True, id="Exists"),
        pytest.param(affinity(expression("none", "Exists")), False, id="Exists, absent"),
        pytest.param(affinity(expression("none", "DoesNotExist")), True, id="DoesNotExist"),
        pytest.param(affinity(expression("zone", "DoesNotExist")), False, id="DoesNotExist, not"),
        pytest.param(affinity(expression("cores", "Gt", "7")), True, id="Gt"),
        pytest.param(affinity(expression("cores", "Gt", "8")), False, id="Gt, equal"),
        pytest.param(affinity(expression("cores", "Gt", "-1")), True, id="Gt, negative"),
        pytest.param(affinity(expression("cores", "Lt", "10")), True, id="Lt, by number"),
        pytest.param(affinity(expression("zone", "Lt", "10")), False, id="Lt of no number"),
        pytest.param(affinity(expression("cores", "Lt", "x")), False, id="Lt than no number"),
        pytest.param(affinity(expression("cores", "Gt", "1", "2")), False, id="Gt of two"),
        pytest.param(affinity(expression("none", "Gt", "1")), False, id="Gt, absent"),
        pytest.param(affinity(expression("zone", "Like", "a")), False, id="unknown operator"),
        pytest.param(affinity(by_name("n")), True, id="field"),
        pytest.param(affinity(by_name("m")), False, id="field, another"),
        pytest.param(affinity(by_name("m", operator="NotIn")), True, id="field NotIn"),
        pytest.param(affinity({**by_name("n"), **expression("zone", "In", "b")}), False, id="fields and expressions"),
        pytest.param({**affinity(by_name("n")), "nodeSelector": {"zone": "b"}}, False, id="both must hold"),
    ],
)
def test_labels_and_affinity(spec: Obj, matches: bool) -> None:
    assert matches_node(spec, node(labels=LABELS)) is matches
    assert why_not(spec, node(labels=LABELS)) == (None if matches else MISMATCH)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, None),
        (affinity(by_name("a")), {"a"}),
        (affinity(by_name("a"), by_name("b")), {"a", "b"}),
        (affinity({**by_name("a"), **expression("zone", "Exists")}), {"a"}),
        (affinity(by_name("a"), expression("zone", "Exists")), None),
        (affinity(by_name("a", operator="NotIn")), None),
        (affinity(by_name("a"), {}), {"a"}),
        (affinity(), set()),
    ],
)
def test_pinned_to(spec: Obj, names: set[str] | None) -> None:
    assert pinned_to(spec) == names


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k"}, False),
        ({"key": "j", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Like", "value": "v"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 0}, True),
    ],
)
def test_tolerations(toleration: Obj, covered: bool) -> None:
    assert tolerates(toleration, TAINT) is covered


@pytest.mark.parametrize(
    ("node_spec", "tolerations", "reason"),
    [
        ({"taints": [TAINT]}, [], TAINTED),
        ({"taints": [TAINT]}, [{"operator": "Exists"}], None),
        ({"taints": [{**TAINT, "effect": "NoExecute"}]}, [], TAINTED),
        ({"taints": [{**TAINT, "effect": "PreferNoSchedule"}]}, [], None),
        ({"taints": [TAINT, {"key": "l", "effect": "NoSchedule"}]}, [{"key": "k", "operator": "Exists"}], TAINTED),
        ({"unschedulable": True}, [], CORDONED),
        ({"unschedulable": True}, [{"key": UNSCHEDULABLE, "operator": "Exists"}], None),
    ],
)
def test_taints_and_cordons(node_spec: Obj, tolerations: list[Obj], reason: str | None) -> None:
    assert why_not({"tolerations": tolerations}, node(**node_spec)) == reason


NO_EXECUTE = {"key": "k", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("taints", "tolerations", "after_s"),
    [
        ([], [], None),
        ([TAINT], [], None),
        ([NO_EXECUTE], [], 0),
        ([NO_EXECUTE], [{"key": "k", "operator": "Exists"}], None),
        ([NO_EXECUTE], [{"key": "k", "operator": "Exists", "tolerationSeconds": 30}], 30),
        ([NO_EXECUTE], [{"key": "k", "operator": "Exists", "tolerationSeconds": -3}], 0),
        (
            [NO_EXECUTE],
            [{"operator": "Exists", "tolerationSeconds": 30}, {"key": "k", "operator": "Exists"}],
            30,
        ),
        (
            [NO_EXECUTE, {"key": "l", "effect": "NoExecute"}],
            [
                {"operator": "Exists", "tolerationSeconds": 30},
                {"key": "l", "operator": "Exists", "tolerationSeconds": 9},
            ],
            9,
        ),
        ([NO_EXECUTE, {"key": "l", "effect": "NoExecute"}], [{"key": "l", "operator": "Exists"}], 0),
    ],
)
def test_how_long_a_pod_may_stay(taints: list[Obj], tolerations: list[Obj], after_s: float | None) -> None:
    assert evict_after_s(tolerations, taints) == after_s
