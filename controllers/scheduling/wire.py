"""JSON -> what placing reads: nodes, the placement in a pod template, the node a pod is pinned to."""

import msgspec

from oarlock.controllers.objects.wire_parts import Expression, decoded
from oarlock.controllers.scheduling.model import Node, NodeRequirement, NodeTerm, Placement, Taint, Toleration

NODE_NAME_FIELD = "metadata.name"


class _NodeMeta(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    labels: dict[str, str] | None = None


class _Taint(msgspec.Struct):
    key: str
    effect: str
    value: str | None = None


class _NodeSpec(msgspec.Struct):
    taints: tuple[_Taint, ...] | None = None


class _Node(msgspec.Struct):
    metadata: _NodeMeta
    spec: _NodeSpec | None = None


class _Term(msgspec.Struct, rename="camel"):
    match_expressions: tuple[Expression, ...] | None = None
    match_fields: tuple[Expression, ...] | None = None


class _Required(msgspec.Struct, rename="camel"):
    node_selector_terms: tuple[_Term, ...] | None = None


class _NodeAffinity(msgspec.Struct):
    required: _Required | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class _Toleration(msgspec.Struct, rename="camel"):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None
    tolerations: tuple[_Toleration, ...] | None = None
    host_network: bool | None = None


class _Template(msgspec.Struct):
    spec: _PodSpec | None = None


_NODE = msgspec.json.Decoder(_Node)
_AFFINITY = msgspec.json.Decoder(_Affinity | None)
_TEMPLATE = msgspec.json.Decoder(_Template | None)


def node_from_json(raw: bytes) -> tuple[str, Node]:
    """A v1 Node: its resourceVersion and its projection. Raises WireError."""
    wire = decoded(_NODE, raw, "Node")
    meta, taints = wire.metadata, (wire.spec and wire.spec.taints) or ()
    return meta.resource_version, Node(
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels or {},
        taints=tuple([Taint(t.key, t.effect, t.value or "") for t in taints]),
    )


def placement_from_template(raw: bytes | msgspec.Raw) -> Placement:
    """What the JSON of a pod template says about nodes; null and an empty template say nothing.

    Raises WireError.
    """
    template = decoded(_TEMPLATE, raw, "pod template")
    spec = template and template.spec
    if not spec:
        return Placement()
    return Placement(
        node_name=spec.node_name or "",
        node_selector=spec.node_selector or {},
        terms=_terms(spec.affinity),
        tolerations=tuple(
            Toleration(t.key or "", t.operator or "", t.value or "", t.effect or "", t.toleration_seconds)
            for t in spec.tolerations or ()
        ),
        host_network=bool(spec.host_network),
    )


def pinned_node(raw: msgspec.Raw) -> str:
    """The node to which the JSON of a spec.affinity pins its pod: the value of the first requirement, in order
    of terms, that is `metadata.name` In one value. Empty without one, or where that first one has several.

    Raises WireError. Upstream: `pkg/controller/daemon/util/daemonset_util.go` (GetTargetNodeName).
    """
    for term in _required_terms(decoded(_AFFINITY, raw, "pod affinity")) or ():
        for field in term.match_fields or ():
            if field.key == NODE_NAME_FIELD and field.operator == "In":
                return field.values[0] if field.values and len(field.values) == 1 else ""
    return ""


def _required_terms(affinity: _Affinity | None) -> tuple[_Term, ...] | None:
    required = affinity and affinity.node_affinity and affinity.node_affinity.required
    return None if not required else required.node_selector_terms or ()


def _terms(affinity: _Affinity | None) -> tuple[NodeTerm, ...] | None:
    terms = _required_terms(affinity)
    if terms is None:
        return None
    return tuple(NodeTerm(_requirements(t.match_expressions), _requirements(t.match_fields)) for t in terms)


def _requirements(wire: tuple[Expression, ...] | None) -> tuple[NodeRequirement, ...]:
    return tuple(NodeRequirement(e.key, e.operator, e.values or ()) for e in wire or ())
