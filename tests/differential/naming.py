"""What stands for the names of a Deployment's ReplicaSets, which the two sides hash differently. Pure.

A ReplicaSet with the label `pod-template-hash` is called by its Deployment's name and by what it runs: the first image,
and a digest of its template without that label. A second one with the same template has a `#2` behind that.
"""

from __future__ import annotations

import re
from collections import Counter
from hashlib import sha256
from typing import Any

import orjson

from tests.differential.reading import POD_HASH, labels

Obj = dict[str, Any]


class Naming:
    """Of one scenario on one side. Remembers ReplicaSets that have gone, as events go on telling of them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._hashes: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._pattern = re.compile("(?!)")

    def learn(self, replicaset: Obj) -> None:
        """In the order of creation."""
        name, suffix = replicaset["metadata"]["name"], labels(replicaset).get(POD_HASH)
        if suffix is None or name in self._names:
            return
        called = f"{name.removesuffix(f'-{suffix}')}:{_contents(replicaset['spec']['template'])}"
        self._counts[called] += 1
        number = self._counts[called]
        self._names[name] = called if number == 1 else f"{called}#{number}"
        self._hashes[suffix] = self._names[name].partition(":")[2]
        longest_first = sorted(map(re.escape, self._names), key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w-])({'|'.join(longest_first)})(?![\w-])")

    def of(self, name: str) -> str:
        """What stands for a ReplicaSet's name; any other name stands for itself."""
        return self._names.get(name, name)

    def labelled(self, pairs: dict[str, str]) -> dict[str, str]:
        """Labels or a selector, with the hash replaced."""
        suffix = pairs.get(POD_HASH)
        return pairs if suffix is None else {**pairs, POD_HASH: self._hashes.get(suffix, "unknown")}

    def told(self, text: str) -> str:
        """A message, with the names in it replaced."""
        return self._pattern.sub(lambda found: self._names[found[0]], text)


def template_of(obj: Obj) -> Obj:
    """The pod template without the hash: that by which a Deployment knows its new ReplicaSet."""
    template = obj["spec"]["template"]
    kept = {key: value for key, value in (template["metadata"].get("labels") or {}).items() if key != POD_HASH}
    meta = {key: value for key, value in template["metadata"].items() if key != "creationTimestamp"}
    return {**template, "metadata": {**meta, "labels": kept}}


def _contents(template: Obj) -> str:
    bare = template_of({"spec": {"template": template}})
    digest = sha256(orjson.dumps(bare, option=orjson.OPT_SORT_KEYS)).hexdigest()[:6]
    return f"{template['spec']['containers'][0]['image']}~{digest}"
