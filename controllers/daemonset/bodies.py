"""Bodies of daemon pods: the template's, with the label of the revision, the tolerations of every daemon pod, and a
required node affinity that allows one node only.

Upstream: `pkg/controller/daemon/util/daemonset_util.go` (CreatePodTemplate, ReplaceDaemonSetPodNodeNameNodeAffinity).
"""

from collections.abc import Mapping

import msgspec

from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.daemonset.podmap import GENERATION_LABEL
from oarlock.controllers.flavour import DAEMONSET, Flavour
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.ownership.claim import controller_ref_of
from oarlock.controllers.pods.pod_template import PodBodies, TemplateError
from oarlock.controllers.pods.slots import name_prefix
from oarlock.controllers.scheduling.tolerations import tolerations_json

_Object = dict[str, msgspec.Raw]


class _Template(msgspec.Struct):
    metadata: _Object | None = None
    spec: _Object | None = None


_TEMPLATE = msgspec.json.Decoder(_Template)
_OBJECT = msgspec.json.Decoder(_Object | None)
_LABELS = msgspec.json.Decoder(dict[str, str] | None)
_NULL = msgspec.Raw(b"null")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_NODE = b'""'
_PIN = b'{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":[%b]}]}]}' % _NO_NODE
# A body ends with its spec, the spec with its affinity, that with the node affinity, and that with the pin.
_END = _PIN[_PIN.index(_NO_NODE) :] + b"}" * len(("nodeAffinity", "affinity", "spec", "pod"))


class DaemonPodBodies:
    """Made once a turn; then each body costs a few concatenations, however large the template."""

    __slots__ = ("_bodies", "_nodes")

    def __init__(self, owner: DaemonSet, revision: str, nodes: Mapping[str, str], flavour: Flavour = DAEMONSET) -> None:
        """`revision`: the hash label. `nodes`: node by pod name. Raises TemplateError as other bodies do."""
        template = _pinned_template(owner, revision)
        ref = controller_ref_of(owner, flavour)
        self._bodies = PodBodies(owner.namespace, name_prefix(owner.name), template, ref)
        self._nodes = nodes

    def body(self, name: str) -> bytes:
        """JSON of the pod of that name. Raises TemplateError for one that is not among `nodes`."""
        node = self._nodes.get(name)
        if node is None:
            raise TemplateError(f"unable to create pod {name}: for which node is not known")
        body = self._bodies.body(name)
        return body[: -len(_END)] + msgspec.json.encode(node) + _END[len(_NO_NODE) :]


def _pinned_template(owner: DaemonSet, revision: str) -> bytes:
    """The template of a pod that is pinned to a node with an empty name; all else stays as spelled.

    The template's own required node affinity is dropped: it was checked when the node was chosen, and a later change of
    the node's labels must not keep the pod from being assigned.
    """
    try:
        decoded = _TEMPLATE.decode(owner.template)
        metadata, spec = decoded.metadata or {}, decoded.spec or {}
        labels = _LABELS.decode(metadata.get("labels", _NULL))
        affinity = _OBJECT.decode(spec.pop("affinity", _NULL)) or {}
        node_affinity = _OBJECT.decode(affinity.pop("nodeAffinity", _NULL)) or {}
    except msgspec.MsgspecError as error:
        raise TemplateError(f"unable to create pods, template: {error}") from error
    if labels:  # without any the pods would not be selected: PodBodies then refuses to make one
        labels[HASH_LABEL] = revision
        if owner.template_generation is not None:
            labels[GENERATION_LABEL] = str(owner.template_generation)
        metadata["labels"] = _raw(labels)
    node_affinity.pop(_REQUIRED, None)
    node_affinity[_REQUIRED] = msgspec.Raw(_PIN)
    affinity["nodeAffinity"] = _raw(node_affinity)
    spec["tolerations"] = msgspec.Raw(tolerations_json(owner.placement))
    spec["affinity"] = _raw(affinity)
    return msgspec.json.encode({"metadata": metadata, "spec": spec})


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
