"""Plans against a cluster, what its API server was really asked, and manifests to plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import yaml

from oarlock.cli.plan.acts import UNKNOWN
from oarlock.cli.plan.live import LiveCluster
from oarlock.cli.plan.reasons import ALIKE
from oarlock.cli.plan.report import plan_of
from oarlock.cluster.access import config
from oarlock.sandbox.manifests.checks import check
from oarlock.sandbox.manifests.documents import parse
from oarlock.testing import Cluster

Obj = dict[str, Any]


class Rig:
    """``cluster``: of the test's own namespace."""

    def __init__(self, cluster: Cluster, log: Path) -> None:
        self.everywhere = self.cluster = cluster
        self.directory = log.parent
        self._log = log

    def plan(self, obj: Obj, steps: int = 100) -> Obj:
        """Of one object, in this thread: the kinds of a fleet in this process stay as they are."""
        (document,) = parse(orjson.dumps(obj), "test.yaml")
        checked = check([document], namespace=self.cluster.namespace)
        assert not checked.problems, checked.problems
        now_ms = round(self.everywhere.time.now() * 1000)
        live = LiveCluster(config.load(self.cluster.kubeconfig))
        try:
            return plan_of(live, checked.items[0], "test.yaml: document 1", steps, now_ms)
        finally:
            live.close()

    def file(self, *objs: Obj) -> str:
        path = self.directory / "plan.yaml"
        path.write_text(yaml.safe_dump_all(objs))
        return str(path)

    def asked(self, since: int = 0) -> list[Obj]:
        """All requests since a number of them, as the server's audit log has them."""
        running = self.everywhere._started
        audit = running.api._audit
        assert audit is not None
        running.call(audit.flush)
        return [orjson.loads(line) for line in self._log.read_bytes().splitlines()[since:]]


def is_read_or_dry(call: Obj) -> bool:
    """Whether a request can have changed nothing, by its verb and its path."""
    return call["verb"] in ("get", "list", "watch") or "dryRun=All" in call["requestURI"]


def owner(kind: str, name: str = "web", *, image: str = "nginx:1", **spec: Any) -> Obj:
    """``template``: what a pod template has beside labels and one container."""
    template = {"containers": [{"name": "app", "image": image}], **spec.pop("template", {})}
    labels = {"app": name}
    selector: Obj = labels if kind == "ReplicationController" else {"matchLabels": labels}
    return {
        "apiVersion": "v1" if kind == "ReplicationController" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": selector, "template": {"metadata": {"labels": labels}, "spec": template}, **spec},
    }


def rolling(surge: int | str, unavailable: int | str) -> Obj:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def acts(plan: Obj, verb: str, kind: str = "Pod") -> list[str]:
    """The names of such acts, in order; with a last part of ????? where the plan does not claim to know it."""
    return [
        act["name"][:-5] + UNKNOWN if act.get("why") == ALIKE else act["name"]
        for step in plan["steps"]
        for act in step["acts"]
        if (act["verb"], act["kind"]) == (verb, kind)
    ]
