"""Manifests written by others: which nodes each DaemonSet asks for, and what each ReplicationController selects.

The expected nodes are written down in manifest_nodes.py. Skipped where the manifests are not at hand.
"""

import json

import pytest
import yaml

from oarlock.controllers.daemonset.wire import daemonset_from_json
from oarlock.controllers.objects.codec import decode_daemonset, decode_replicaset, encode
from oarlock.controllers.objects.model import LabelSelector
from oarlock.controllers.objects.wire import replicationcontroller_from_json
from oarlock.controllers.scheduling.eligibility import eligibility_of
from oarlock.controllers.scheduling.model import Node
from tests import manifest_nodes
from tests.controllers.scheduling.scheduling_builders import taint
from tests.manifest_nodes import EXPECTED, MANIFESTS

pytestmark = pytest.mark.skipif(not MANIFESTS.is_dir(), reason="no manifests at hand")

NODES = {
    name: Node(name, f"uid-{name}", sort.labels, tuple(map(taint, (*sort.taints, *sort.by_state))))
    for name, sort in manifest_nodes.NODES.items()
}


def manifest(file, kind):
    """The JSON of each object of that kind in the file, as if a server had taken it in."""
    for document in yaml.safe_load_all((MANIFESTS / file).read_text()):
        if document and document["kind"] == kind:
            document["metadata"].setdefault("namespace", "default")
            document["metadata"] |= {"uid": "u1", "resourceVersion": "42"}
            yield json.dumps(document).encode()


@pytest.mark.parametrize(("file", "name", "nodes", "why"), EXPECTED, ids=[file for file, *_ in EXPECTED])
def test_daemonset(file, name, nodes, why):
    """Where its pods should run."""
    [raw] = manifest(file, "DaemonSet")
    _, owner = daemonset_from_json(raw)
    assert owner.name == name
    assert decode_daemonset(encode(owner)) == owner
    eligible = eligibility_of(owner.placement).eligible
    assert {node for node in NODES if eligible(NODES[node])[0]} == nodes, why


def test_none_is_left_out():
    """Every file with a DaemonSet has its line above."""
    files = {path.name for path in MANIFESTS.glob("*.yaml") if list(manifest(path.name, "DaemonSet"))}
    assert files == {file for file, *_ in EXPECTED}


@pytest.mark.parametrize(
    ("file", "replicas", "selector", "labels"),
    [
        ("rc-cassandra.yaml", 2, None, {"app": "cassandra"}),
        ("rc-elasticsearch.yaml", 1, None, {"component": "elasticsearch"}),
        ("rc-guestbook-frontend.yaml", 3, None, {"app": "guestbook", "tier": "frontend"}),
        ("rc-guestbook-redis-replica.yaml", 2, None, {"app": "redis", "role": "replica", "tier": "backend"}),
        ("rc-redis.yaml", 1, LabelSelector({"name": "redis"}), {"name": "redis", "role": "master"}),
        ("rc-spark-worker.yaml", 2, LabelSelector({"component": "spark-worker"}), {"component": "spark-worker"}),
    ],
)
def test_replicationcontroller(file, replicas, selector, labels):
    """As written; filling in the selector that most leave out is the server's work."""
    [raw] = manifest(file, "ReplicationController")
    _, owner = replicationcontroller_from_json(raw)
    assert (owner.replicas, owner.selector, owner.template_labels) == (replicas, selector, labels)
    assert decode_replicaset(encode(owner)) == owner
