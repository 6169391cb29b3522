"""Small builders for the tests of placing. A taint is written `key=value:Effect`, as kubectl writes it."""

from typing import Any

from oarlock.controllers.scheduling.model import Node, NodeRequirement, NodeTerm, Placement, Taint, Toleration

LABELS = {"os": "linux", "zone": "a", "cores": "8", "empty": ""}


def taint(text: str) -> Taint:
    """`key=value:Effect` or `key:Effect`."""
    key, _, effect = text.rpartition(":")
    key, _, value = key.partition("=")
    return Taint(key, effect, value)


def node(name: str = "n1", *taints: str, **fields: Any) -> Node:
    """A node with the labels above."""
    return Node(
        **({"name": name, "uid": f"uid-{name}", "labels": LABELS, "taints": tuple(map(taint, taints))} | fields)
    )


def req(key: str, operator: str, *values: str) -> NodeRequirement:
    """A requirement on a label or a field."""
    return NodeRequirement(key, operator, values)


def labels_term(*requirements: NodeRequirement) -> NodeTerm:
    """A term of matchExpressions."""
    return NodeTerm(requirements)


def fields_term(*requirements: NodeRequirement) -> NodeTerm:
    """A term of matchFields."""
    return NodeTerm((), requirements)


def tolerating(*tolerations: Toleration, **fields: Any) -> Placement:
    """A placement with these tolerations of its own."""
    return Placement(tolerations=tolerations, **fields)
