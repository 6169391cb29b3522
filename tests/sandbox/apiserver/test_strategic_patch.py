"""Strategic merge patch: each directive, each keyed list, the controllers' patches, the order of lists."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.patches import STRATEGIC_PATCH, apply, uid_conflict

Obj = dict[str, Any]


def patched(kind: str, document: Obj, patch: Any) -> Obj:
    before, patch_before = copy.deepcopy(document), copy.deepcopy(patch)
    result = apply(STRATEGIC_PATCH, kind, document, patch)
    assert document == before, "the document handed in was changed"
    assert patch == patch_before, "the patch handed in was changed"
    return result


def names(*values: str) -> list[Obj]:
    return [{"name": value} for value in values]


def spec(**fields: Any) -> Obj:
    return {"spec": fields}


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        pytest.param(spec(a=1, b=2), spec(b=3), spec(a=1, b=3), id="a value replaces"),
        pytest.param(spec(a=1, b=2), spec(b=None), spec(a=1), id="null removes"),
        pytest.param(spec(a=1), spec(b=None), spec(a=1), id="null of what is absent"),
        pytest.param(spec(), spec(a={"x": 1, "y": None}), spec(a={"x": 1}), id="nulls in a new object go"),
        pytest.param(spec(a={"x": 1}), spec(a=[1]), spec(a=[1]), id="another type replaces"),
        pytest.param(spec(a={"x": 1, "y": 1}), spec(a={"$patch": "replace", "z": 2}), spec(a={"z": 2}), id="replace"),
        pytest.param(spec(a={"x": 1}), spec(a={"$patch": "delete"}), spec(a={}), id="delete leaves it empty"),
        pytest.param(spec(), spec(a={"$patch": "delete"}), spec(), id="delete of what is absent"),
        pytest.param(
            spec(a={"x": 1}),
            spec(a={"$patch": "merge", "y": 2}),
            spec(a={"x": 1, "y": 2}),
            id="merge is merge",
        ),
        pytest.param(
            spec(volumes=[{"name": "v", "emptyDir": {}}]),
            spec(volumes=[{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]),
            spec(volumes=[{"name": "v", "secret": {"secretName": "s"}}]),
            id="retainKeys drops all other keys",
        ),
        pytest.param(spec(a={"x": 1, "y": 1}), spec(a={"$retainKeys": ["x"]}), spec(a={"x": 1}), id="retainKeys alone"),
        pytest.param(
            spec(tolerations=[{"key": "a"}, {"key": "b"}]),
            spec(tolerations=[{"key": "c"}]),
            spec(tolerations=[{"key": "c"}]),
            id="tolerations are atomic",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["c", "a"]}},
            {"metadata": {"finalizers": ["c", "a", "b"]}},
            id="finalizers are a set",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b", "a"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}},
            id="delete from a primitive list",
        ),
        pytest.param(
            {"metadata": {}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {}},
            id="delete from a list that is absent",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": None}},
            {"metadata": {}},
            id="a null list of deletions removes the list",
        ),
        pytest.param(spec(a="text"), spec(a={"$patch": "delete"}), spec(), id="delete of what is no object removes it"),
        pytest.param(
            spec(tolerations=[{"key": "a"}]),
            spec(**{"$setElementOrder/tolerations": [], "tolerations": [{"key": "b"}]}),
            spec(tolerations=[{"key": "b"}]),
            id="the order of an atomic list is its own",
        ),
        pytest.param(
            spec(tolerations=[{"key": "a"}]),
            spec(**{"$setElementOrder/tolerations": [{"key": "b"}]}),
            spec(tolerations=[{"key": "a"}]),
            id="an order alone does not touch an atomic list",
        ),
        pytest.param(spec(), spec(**{"$setElementOrder/containers": names("a")}), spec(), id="order of what is absent"),
        pytest.param(
            spec(containers=names("b")),
            spec(**{"$setElementOrder/containers": [], "containers": names("a")}),
            spec(containers=names("b", "a")),
            id="an empty order",
        ),
        pytest.param(
            spec(containers=names("b")),
            spec(containers=[{"name": "a", "$setElementOrder/env": names("x"), "env": names("x")}]),
            spec(containers=[{"name": "a", "env": names("x")}, {"name": "b"}]),
            id="an order in a new element",
        ),
        pytest.param(spec(), spec(**{"$comment": "x"}), spec(), id="an unknown directive is no field"),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b", "c"]}},
            {
                "metadata": {
                    "$deleteFromPrimitiveList/finalizers": ["b"],
                    "$setElementOrder/finalizers": ["d", "c", "a"],
                    "finalizers": ["d"],
                }
            },
            {"metadata": {"finalizers": ["d", "c", "a"]}},
            id="add, delete and order at once",
        ),
    ],
)
def test_objects_and_primitives(document: Obj, patch: Obj, result: Obj) -> None:
    assert patched("Pod", document, patch) == result


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        pytest.param([{"name": "b", "image": "2"}], [{"name": "a"}, {"name": "b", "image": "2"}], id="merges by name"),
        pytest.param([{"name": "c"}], names("c", "a", "b"), id="a new one comes first"),
        pytest.param([{"name": "a", "$patch": "delete"}], names("b"), id="delete"),
        pytest.param([{"name": "x", "$patch": "delete"}], names("a", "b"), id="delete of none"),
        pytest.param([{"$patch": "replace"}, {"name": "x"}], names("x"), id="replace the list"),
        pytest.param([{"$patch": "replace"}], [], id="replace by nothing"),
        pytest.param(names("b", "a"), names("b", "a"), id="the patch's order wins"),
        pytest.param([], names("a", "b"), id="an empty patch list changes nothing"),
        pytest.param(
            [{"name": "c", "env": [{"name": "x", "$patch": "delete"}, {"name": "y"}]}],
            [{"name": "c", "env": names("y")}, *names("a", "b")],
            id="a directive in a new element acts on nothing",
        ),
    ],
)
def test_containers(patch: list[Any], result: list[Any]) -> None:
    assert patched("Pod", spec(containers=names("a", "b")), spec(containers=patch)) == spec(containers=result)


@pytest.mark.parametrize(
    ("kind", "path", "key", "strings"),
    [
        ("Pod", "spec.containers", "name", True),
        ("Pod", "spec.initContainers", "name", True),
        ("Pod", "spec.ephemeralContainers", "name", True),
        ("Pod", "spec.containers.env", "name", True),
        ("Pod", "spec.containers.ports", "containerPort", False),
        ("Pod", "spec.containers.volumeMounts", "mountPath", True),
        ("Pod", "spec.containers.volumeDevices", "devicePath", True),
        ("Pod", "spec.initContainers.env", "name", True),
        ("Pod", "spec.volumes", "name", True),
        ("Pod", "spec.imagePullSecrets", "name", True),
        ("Pod", "spec.hostAliases", "ip", True),
        ("Pod", "spec.topologySpreadConstraints", "topologyKey", True),
        ("Pod", "status.conditions", "type", True),
        ("Pod", "status.podIPs", "ip", True),
        ("Pod", "metadata.ownerReferences", "uid", True),
        ("ReplicaSet", "spec.template.spec.containers", "name", True),
        ("ReplicaSet", "spec.template.spec.containers.ports", "containerPort", False),
        ("ReplicaSet", "status.conditions", "type", True),
        ("Deployment", "spec.template.spec.volumes", "name", True),
        ("DaemonSet", "status.conditions", "type", True),
        ("Node", "status.addresses", "type", True),
        ("Node", "status.conditions", "type", True),
        ("Service", "spec.ports", "port", False),
        ("ServiceAccount", "secrets", "name", True),
        ("Lease", "metadata.ownerReferences", "uid", True),
    ],
)
def test_keyed_lists(kind: str, path: str, key: str, strings: bool) -> None:
    """Each keyed list: one element is changed by its key, its neighbour stays."""
    one, two = ("k1", "k2") if strings else (80, 443)

    parts = path.split(".")
    listed = [i for i, part in enumerate(parts[:-1]) if part.endswith("ontainers")]

    def build(leaf: list[Obj]) -> Obj:
        value: Any = leaf
        for i in range(len(parts) - 1, -1, -1):
            value = {parts[i]: [{"name": "c0", **value}] if i in listed else value}
        return value

    before = build([{key: one, "v": 1}, {key: two, "v": 1}])
    result = patched(kind, before, build([{key: two, "v": 2}]))
    assert result == build([{key: one, "v": 1}, {key: two, "v": 2}])


@pytest.mark.parametrize(
    ("old", "patch", "order", "result"),
    [
        pytest.param("ab", "", "ba", "ba", id="order alone"),
        pytest.param("ab", "c", "acb", "acb", id="a new one between"),
        pytest.param("axb", "", "ba", "xba", id="the server's own keeps its place before its old follower"),
        pytest.param("abx", "", "ba", "bax", id="the server's own stays last"),
        pytest.param("", "ab", "ab", "ab", id="a new list"),
        pytest.param("sab", "b", "ab", "sab", id="the server's own first"),
    ],
)
def test_set_element_order(old: str, patch: str, order: str, result: str) -> None:
    fields: Obj = {"$setElementOrder/containers": names(*order)}
    if patch:
        fields["containers"] = names(*patch)
    document = spec(containers=names(*old)) if old else spec()
    assert patched("Pod", document, spec(**fields)) == spec(containers=names(*result))


def test_set_image_as_kubectl_sends_it() -> None:
    before = spec(template=spec(containers=[{"name": "web", "image": "a:1", "ports": [{"containerPort": 80}]}]))
    patch = spec(
        template=spec(
            **{
                "$setElementOrder/containers": [{"name": "web"}],
                "containers": [{"name": "web", "image": "a:2"}],
            }
        )
    )
    after = patched("ReplicaSet", before, patch)
    containers = after["spec"]["template"]["spec"]["containers"]
    assert containers == [{"name": "web", "image": "a:2", "ports": [{"containerPort": 80}]}]


def owner(uid: str, **more: Any) -> Obj:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, **more}


ADOPTED = owner("rs", controller=True, blockOwnerDeletion=True)


def pod(*owners: Obj, uid: str = "p") -> Obj:
    return {"metadata": {"name": "pod", "uid": uid, "ownerReferences": list(owners)}, "spec": {}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"metadata": {"name": "pod", "uid": "p"}}, [ADOPTED], id="an orphan without the list"),
        pytest.param(pod(), [ADOPTED], id="an orphan"),
        pytest.param(pod(owner("rs")), [ADOPTED], id="upgraded in place"),
        pytest.param(pod(owner("x"), owner("rs")), [owner("x"), ADOPTED], id="in place among others"),
        pytest.param(pod(owner("x")), [ADOPTED, owner("x")], id="others stay"),
        pytest.param(pod(ADOPTED), [ADOPTED], id="again"),
    ],
)
def test_adoption(before: Obj, after: list[Obj]) -> None:
    patch = {"metadata": {"ownerReferences": [ADOPTED], "uid": "p"}}
    result = patched("Pod", before, patch)
    assert result["metadata"]["ownerReferences"] == after
    assert uid_conflict(before, result) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(pod(ADOPTED), [], id="ours goes"),
        pytest.param(pod(owner("x"), ADOPTED), [owner("x")], id="only ours goes"),
        pytest.param(pod(owner("x")), [owner("x")], id="one that is not there: no effect"),
    ],
)
def test_release(before: Obj, after: list[Obj]) -> None:
    patch = {"metadata": {"uid": "p", "ownerReferences": [{"$patch": "delete", "uid": "rs"}]}}
    assert patched("Pod", before, patch)["metadata"]["ownerReferences"] == after


def test_release_of_a_pod_without_references() -> None:
    patch = {"metadata": {"uid": "p", "ownerReferences": [{"$patch": "delete", "uid": "rs"}]}}
    result = patched("Pod", {"metadata": {"name": "pod", "uid": "p"}}, patch)
    assert result["metadata"].get("ownerReferences", []) == []


def test_uid_of_another_pod_is_noticed() -> None:
    patch = {"metadata": {"uid": "other", "ownerReferences": [ADOPTED]}}
    why = uid_conflict(pod(), patched("Pod", pod(), patch))
    assert why == "Precondition failed: UID in precondition: other, UID in object meta: p"


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        pytest.param([], 400, id="not an object"),
        pytest.param(spec(a={"$patch": "frob"}), 422, id="unknown directive"),
        pytest.param(spec(containers=[{"image": "x"}]), 422, id="no merge key"),
        pytest.param(spec(containers=[{"$patch": "delete"}]), 422, id="delete without a key"),
        pytest.param(spec(containers=[{"$patch": "frob", "name": "a"}]), 422, id="unknown list directive"),
        pytest.param(spec(containers=[{"$patch": "merge", "name": "a"}]), 422, id="merge of a list"),
        pytest.param(spec(containers=["a"]), 422, id="mixed element types"),
        pytest.param(spec(**{"$setElementOrder/containers": ["a"]}), 422, id="order of plain values"),
        pytest.param(spec(containers=[{"name": {}}]), 422, id="a key that is no plain value"),
        pytest.param({"metadata": {"finalizers": [{}]}}, 422, id="objects in a primitive list"),
        pytest.param({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}, 400, id="no list to delete"),
        pytest.param({"metadata": {"$deleteFromPrimitiveListfinalizers": []}}, 400, id="delete without a field"),
        pytest.param(spec(**{"$setElementOrder/containers": "a"}), 400, id="order is no list"),
        pytest.param(spec(**{"$setElementOrder": []}), 400, id="order without a field"),
        pytest.param(
            spec(**{"$setElementOrder/containers": names("b", "a"), "containers": names("a", "b")}),
            422,
            id="order and patch disagree",
        ),
        pytest.param(
            spec(**{"$setElementOrder/containers": names("a"), "containers": names("c")}),
            422,
            id="patch has what order lacks",
        ),
        pytest.param(spec(a={"$retainKeys": ["x"], "y": 1}), 400, id="retainKeys lacks a key"),
        pytest.param(spec(a={"$retainKeys": "x"}), 400, id="retainKeys is no list"),
    ],
)
def test_refuses(patch: Any, code: int) -> None:
    document = {"metadata": {"finalizers": ["f"]}, "spec": {"containers": names("a", "b"), "a": {"x": 1}}}
    before = copy.deepcopy(document)
    with pytest.raises(ApiError) as refusal:
        apply(STRATEGIC_PATCH, "Pod", document, patch)
    assert refusal.value.code == code
    assert document == before


def test_untouched_parts_are_shared() -> None:
    before = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": names("a")}}
    after = patched("Pod", before, {"metadata": {"labels": {"a": None}}})
    assert after["spec"] is before["spec"]
    assert after["metadata"]["labels"] == {}


_lists = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@given(old=_lists, new=_lists)
def test_merge_keeps_all_and_both_orders(old: list[str], new: list[str]) -> None:
    result = patched("Pod", spec(containers=names(*old)), spec(containers=names(*new)))
    merged = [container["name"] for container in result["spec"]["containers"]]
    assert sorted(merged) == sorted(set(old) | set(new))
    assert [name for name in merged if name in new] == new
    assert [name for name in merged if name not in new] == [name for name in old if name not in new]


@given(old=_lists, order=_lists)
def test_set_element_order_orders(old: list[str], order: list[str]) -> None:
    new = [name for name in order if name not in old]
    fields = {"$setElementOrder/containers": names(*order), "containers": names(*new)}
    result = patched("Pod", spec(containers=names(*old)), spec(**fields))
    merged = [container["name"] for container in result["spec"]["containers"]]
    assert [name for name in merged if name in order] == order
    assert sorted(merged) == sorted(set(old) | set(order))
