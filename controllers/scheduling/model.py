"""What placing a pod reads of nodes and of pod templates: frozen projections."""

import msgspec


class Taint(msgspec.Struct, frozen=True, array_like=True):
    """One entry of a node's spec.taints; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    effect: str
    value: str = ""


class Node(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A node. It has only what placing reads, so other changes of a node do not change it."""

    name: str
    uid: str
    labels: dict[str, str]
    taints: tuple[Taint, ...] = ()

    @property
    def key(self) -> str:
        """Its name: nodes have no namespace."""
        return self.name

    @property
    def namespace(self) -> str:
        """Empty."""
        return ""


class Toleration(msgspec.Struct, frozen=True, array_like=True):
    """One entry of spec.tolerations; an empty key or effect stands for all of them, an empty operator for
    Equal. `toleration_seconds` plays no part in placing and is kept for the pods made; None: for ever.
    """

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeRequirement(msgspec.Struct, frozen=True, array_like=True):
    """One requirement on a label or on a field; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeTerm(msgspec.Struct, frozen=True, array_like=True):
    """Requirements that hold together: on labels (`expressions`) and on fields. One with none of either
    matches nothing.
    """

    expressions: tuple[NodeRequirement, ...] = ()
    fields: tuple[NodeRequirement, ...] = ()


class Placement(msgspec.Struct, frozen=True, array_like=True):
    """What a pod template says about nodes. `terms`: any of them suffices; None: no required node affinity;
    an empty tuple matches nothing. `tolerations` are the template's own.
    """

    node_name: str = ""
    node_selector: dict[str, str] = {}
    terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_network: bool = False
