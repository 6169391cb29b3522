"""Client-side apply of a changed file: whatever changed, the object is what the new file alone would have made.

kubectl computes a strategic merge patch out of the old file, the new file and what is stored, with all its
directives; the server applies it. Random templates, made from a printed seed, go through both.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from oarlock.sandbox.apiserver import defaulting
from tests.sandbox.kubectl.kubectl_harness import KUBECTL, Kubectl

pytestmark = KUBECTL

Obj = dict[str, Any]
OBJECTS = 12  # in one kubectl call, which slows itself down after some fifty requests
NAMES = "abcdef"
SOURCES: list[Obj] = [
    {"emptyDir": {}},
    {"hostPath": {"path": "/x"}},
    {"configMap": {"name": "c"}},
    {"secret": {"secretName": "s"}},
]


class Author:
    """Writes templates whose lists have members come, go, change and change places."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def some(self, letters: str = NAMES, least: int = 0) -> list[str]:
        """A few names, in any order."""
        return self.random.sample(letters, self.random.randint(least, len(letters) - 1))

    def maybe(self, obj: Obj, field: str, value: Any) -> None:
        if value and self.random.random() < 0.8:
            obj[field] = value

    def container(self, name: str) -> Obj:
        container: Obj = {"name": name, "image": f"{name}:{self.random.randint(1, 3)}"}
        self.maybe(container, "env", [self.variable(letter) for letter in self.some()])
        self.maybe(
            container,
            "ports",
            [{"containerPort": 8000 + ord(letter), "name": f"p{letter}"} for letter in self.some("abc")],
        )
        self.maybe(container, "volumeMounts", [{"name": "a", "mountPath": f"/{letter}"} for letter in self.some("abc")])
        self.maybe(container, "args", self.some())
        self.maybe(container, "resources", self.resources())
        return container

    def variable(self, name: str) -> Obj:
        if self.random.random() < 0.3:
            return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
        return {"name": name, "value": str(self.random.randint(1, 3))}

    def resources(self) -> Obj:
        kinds = self.some(["limits", "requests"], 1) if self.random.random() < 0.5 else ["limits"]
        return {kind: {"cpu": str(self.random.randint(1, 2))} for kind in kinds}

    def volume(self, name: str) -> Obj:
        source = self.random.choice(
            [
                {"emptyDir": {}},
                {"hostPath": {"path": "/x"}},
                {"configMap": {"name": "c"}},
                {"secret": {"secretName": "s"}},
            ]
        )
        return {"name": name, **source}

    def toleration(self, key: str) -> Obj:
        if self.random.random() < 0.5:
            return {"key": key, "operator": "Exists"}
        return {"key": key, "operator": "Equal", "value": "x", "effect": "NoSchedule"}

    def affinity(self) -> Obj:
        terms = [
            {"matchExpressions": [{"key": key, "operator": "In", "values": self.some(least=1)}]}
            for key in self.some(least=1)
        ]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}

    def template(self) -> Obj:
        spec: Obj = {"containers": [self.container(name) for name in self.some(least=1)]}
        self.maybe(spec, "initContainers", [self.container(f"i{name}") for name in self.some("abc")])
        names = ["a", *self.some("bcde")]
        self.random.shuffle(names)
        spec["volumes"] = [self.volume(name) for name in names]
        self.maybe(spec, "tolerations", [self.toleration(key) for key in self.some()])
        self.maybe(spec, "nodeSelector", {key: str(self.random.randint(1, 2)) for key in self.some()})
        self.maybe(spec, "affinity", self.affinity())
        self.maybe(spec, "imagePullSecrets", [{"name": name} for name in self.some("abc")])
        self.maybe(spec, "hostAliases", [{"ip": f"10.0.0.{ord(name)}", "hostnames": [name]} for name in self.some()])
        self.maybe(spec, "serviceAccountName", self.random.choice(NAMES))
        meta: Obj = {"labels": {"app": "x", **{key: str(self.random.randint(1, 2)) for key in self.some()}}}
        self.maybe(meta, "annotations", {key: str(self.random.randint(1, 2)) for key in self.some()})
        return {"metadata": meta, "spec": spec}

    def spec(self, kind: str) -> Obj:
        spec: Obj = {"template": self.template()}
        spec["selector"] = {"app": "x"} if kind == "ReplicationController" else {"matchLabels": {"app": "x"}}
        self.maybe(spec, "minReadySeconds", self.random.randint(0, 3))
        if kind == "DaemonSet":
            limit: int | str = self.random.choice([1, 2, "10%"])
            rolling = self.random.choice(
                [{"maxUnavailable": limit, "maxSurge": 0}, {"maxUnavailable": 0, "maxSurge": limit}]
            )
            self.maybe(spec, "updateStrategy", {"type": "RollingUpdate", "rollingUpdate": rolling})
        else:
            self.maybe(spec, "replicas", self.random.randint(0, 3))
        return spec


VERSIONS = {"DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "ReplicationController": "v1"}


@pytest.mark.parametrize("kind", VERSIONS)
def test_applying_over_an_older_file_gives_what_the_newer_says(kubectl: Kubectl, kind: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    author = Author(seed)

    def written() -> list[Obj]:
        meta = {"namespace": kubectl.namespace, "labels": {"own": "label"}}
        return [
            {
                "apiVersion": VERSIONS[kind],
                "kind": kind,
                "metadata": {"name": f"o{n}", **meta},
                "spec": author.spec(kind),
            }
            for n in range(OBJECTS)
        ]

    older, newer = written(), written()
    assert kubectl.apply(*older).count("created") == OBJECTS
    assert kubectl.apply(*newer).count("configured") == OBJECTS
    stored = {obj["metadata"]["name"]: obj["spec"] for obj in kubectl.json("get", kind)["items"]}
    for obj in newer:
        expected = defaulting.apply(kind, obj)["spec"]
        assert stored[obj["metadata"]["name"]] == expected, obj["metadata"]["name"]
    assert kubectl.apply(*newer).count("unchanged") == OBJECTS
