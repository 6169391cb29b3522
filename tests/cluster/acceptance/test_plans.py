"""`oarlock plan` beside kubectl and a fleet: it plans what kubectl would apply, and what it plans happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from oarlock.cli.plan.live import LiveCluster
from oarlock.cli.plan.wanted import wanted
from oarlock.cluster.access import config
from oarlock.controllers.builtin import register_builtin
from oarlock.sandbox.manifests.checks import check
from oarlock.sandbox.manifests.documents import parse
from tests.cluster.acceptance.deployments import deployment, rolled_out, rolling
from tests.cluster.acceptance.stages import Stage
from tests.e2e.e2e_helpers import oarlock
from tests.e2e.e2e_kubectl import Kubectl, Obj, daemonset, template, until

pytestmark = [pytest.mark.kubectl]


def _with(change: Callable[[Obj], object], of: Obj | None = None) -> Obj:
    made = json.loads(json.dumps(of or full()))
    change(made)
    return made  # type: ignore[no-any-return]


def full() -> Obj:
    """A Deployment with something in every sort of list that merges."""
    made: Any = deployment(replicas=0)
    made["metadata"]["annotations"] = {"example.com/a": "1", "example.com/b": "2"}
    made["spec"] |= rolling(2, 1)
    pod = made["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "x"}}]
    pod["tolerations"] = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]
    pod["nodeSelector"] = {"disk": "ssd", "zone": "a"}
    (container,) = pod["containers"]
    container["env"] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    container["ports"] = [{"containerPort": 80}, {"containerPort": 81, "name": "other"}]
    container["args"] = ["one", "two"]
    container["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    return made  # type: ignore[no-any-return]


def _pod(made: Obj) -> Any:
    return made["spec"]["template"]["spec"]


def _container(made: Obj) -> Any:
    return _pod(made)["containers"][0]


EDITS: dict[str, Callable[[Obj], object]] = {
    "nothing": lambda made: None,
    "image": lambda made: _container(made).update(image="nginx:2"),
    "env-goes": lambda made: _container(made)["env"].pop(0),
    "env-comes-first": lambda made: _container(made)["env"].insert(0, {"name": "C", "value": "3"}),
    "env-order": lambda made: _container(made)["env"].reverse(),
    "port-goes": lambda made: _container(made)["ports"].pop(),
    "port-name": lambda made: _container(made)["ports"][0].update(name="web"),
    "args": lambda made: _container(made)["args"].pop(),
    "limit-goes": lambda made: _container(made)["resources"]["limits"].pop("cpu"),
    "container-comes": lambda made: _pod(made)["containers"].append({"name": "d", "image": "d:1"}),
    "container-renamed": lambda made: _container(made).update(name="other"),
    "volume-of-another-kind": lambda made: _pod(made)["volumes"].__setitem__(
        0, {"name": "data", "hostPath": {"path": "/x"}}
    ),
    "volume-goes": lambda made: _pod(made)["volumes"].pop(),
    "toleration-goes": lambda made: _pod(made)["tolerations"].pop(0),
    "node-selector": lambda made: _pod(made)["nodeSelector"].pop("zone"),
    "all-of-a-map": lambda made: _pod(made).pop("nodeSelector"),
    "annotation-goes": lambda made: made["metadata"]["annotations"].pop("example.com/a"),
    "label-changes": lambda made: made["metadata"]["labels"].update(app="other"),
    "recreate": lambda made: made["spec"].update(strategy={"type": "Recreate"}),
    "strategy-without-limits": lambda made: made["spec"].update(strategy={"type": "RollingUpdate"}),
    "strategy-goes": lambda made: made["spec"].pop("strategy"),
    "replicas-not-said": lambda made: made["spec"].pop("replicas"),
    "paused": lambda made: made["spec"].update(paused=True),
}


def test_it_is_what_kubectl_would_apply(cluster: Stage, kubectl: Kubectl) -> None:
    """Each edit, over an object that somebody else has changed, too."""
    kubectl.apply(full())
    kubectl.run("annotate", "deploy", "web", "example.com/other=x")
    kubectl.run("set", "env", "deploy/web", "FOREIGN=1")
    plain = deployment("plain", replicas=0)
    kubectl.apply(plain)
    edits = {name: _with(edit) for name, edit in EDITS.items()}
    edits["over-a-default"] = _with(EDITS["recreate"], plain)  # what was never applied has to go, too
    for name, after in edits.items():
        told = kubectl.run("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(after))
        expected, found = json.loads(told), _wanted(cluster, kubectl, after)
        for part in ("spec", "metadata.labels", "metadata.annotations"):
            assert _part(found, part) == _part(expected, part), (name, part)


def _part(obj: Obj, path: str) -> Any:
    for part in path.split("."):
        obj = obj.get(part) or {}
    return {key: value for key, value in obj.items() if not key.startswith(("kubectl.", "deployment.kubernetes.io/"))}


def _wanted(cluster: Stage, kubectl: Kubectl, obj: Obj) -> Obj:
    register_builtin()
    checked = check(parse(json.dumps(obj).encode(), "test.yaml"), namespace=kubectl.namespace)
    (item,) = checked.items
    live = LiveCluster(config.load(cluster.kubeconfig))
    try:
        found = wanted(live, item, "test.yaml", live.read(item.kind.name, item.namespace, item.name).live)
    finally:
        live.close()
    assert not found.not_asked
    return found.obj


def _plan(kubectl: Kubectl, obj: Obj, folder: Any, code: int = 0) -> Obj:
    (folder / "plan.json").write_text(json.dumps(obj))
    done = oarlock(
        *("plan", "-f", str(folder / "plan.json"), "-n", kubectl.namespace, "-o", "json"),
        *("--kubeconfig", str(kubectl.kubeconfig)),
    )
    assert done.returncode == code, done.stderr
    (found,) = json.loads(done.stdout)["plans"]
    return found  # type: ignore[no-any-return]


def test_a_rollout(kubectl: Kubectl, tmp_path: Any) -> None:
    kubectl.apply(deployment(replicas=3))
    rolled_out(kubectl, 3)
    until(lambda: not _plan(kubectl, deployment(replicas=3), tmp_path)["would_change"], 20, "nothing would happen")
    after = deployment(replicas=3, image="nginx:2")
    plan = _plan(kubectl, after, tmp_path)
    assert plan["template_changes"]
    assert plan["pod_admission"] == {"asked": True, "admitted": True}
    assert not plan["warnings"]
    kubectl.apply(after)
    rolled_out(kubectl, 3)
    sized = {each["metadata"]["name"]: each["spec"]["replicas"] for each in kubectl.items("rs")}
    assert sized == {each["name"]: each["replicas"] for each in plan["ends"]["replicasets"]}


def test_a_daemonset_comes_and_leaves_nodes(cluster: Stage, kubectl: Kubectl, node: str, tmp_path: Any) -> None:
    chosen = daemonset(pod={"nodeSelector": {"own": kubectl.namespace}})
    plan = _plan(kubectl, chosen, tmp_path)
    assert [act["node"] for step in plan["steps"] for act in step["acts"] if act["kind"] == "Pod"] == [node]
    assert plan["nodes"]["fit"] == 1
    kubectl.apply(chosen)
    until(lambda: kubectl.json("get", "ds", "agent").get("status", {}).get("numberReady") == 1, 30, "it is ready")
    nowhere = daemonset(pod={"nodeSelector": {"own": "nobody"}})
    plan = _plan(kubectl, nowhere, tmp_path)
    (gone,) = [act for step in plan["steps"] for act in step["acts"] if act["verb"] == "delete"]
    assert gone["why"] == "nodeSelector own=nobody"
    (pod,) = kubectl.items("pods")
    assert gone["name"] == pod["metadata"]["name"]
    kubectl.apply(nowhere)
    until(lambda: not kubectl.items("pods"), 30, "its pod has gone")


def test_what_the_server_does_not_know_is_refused_or_named(cluster: Stage, kubectl: Kubectl, tmp_path: Any) -> None:
    odd: Any = deployment()
    odd["spec"]["template"]["spec"]["nodeSelecter"] = {"a": "b"}
    if cluster.embedded:
        pytest.skip("the embedded server keeps fields of pods that it does not know")
    if cluster.version >= (1, 25):
        with pytest.raises(json.JSONDecodeError):
            _plan(kubectl, odd, tmp_path, code=2)
    else:
        plan = _plan(kubectl, odd, tmp_path)
        assert any("spec.template.spec.nodeSelecter" in each for each in plan["warnings"])


def test_the_template_of_others_is_spelled_as_it_is(kubectl: Kubectl, tmp_path: Any) -> None:
    """A plan over an object that a file says less of: what others have set stays."""
    kubectl.apply(deployment(replicas=1))
    kubectl.run("set", "resources", "deploy/web", "--limits=cpu=1")
    rolled_out(kubectl, 1)
    less = deployment(replicas=1)
    assert less["spec"]["template"] == template("web")
    plan = _plan(kubectl, less, tmp_path)
    assert plan["action"] == "none"
