"""Bodies of the pods an owner creates: the template's spec unchanged, its labels, annotations and
finalizers, and one owner reference. Upstream: `pkg/controller/controller_utils.go` (GetPodFromTemplate,
createPods).
"""

from collections.abc import Mapping

import msgspec

from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects.model import OwnerRef, ReplicaSet
from oarlock.controllers.ownership.claim import controller_ref_of, reference_json
from oarlock.controllers.pods.slots import name_prefix

_NONE: Mapping[str, str] = {}


class TemplateError(ValueError):
    """No pod can be made. The text goes into the owner's ReplicaFailure condition; there is no request and no event."""


class _Meta(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class _Template(msgspec.Struct):
    metadata: _Meta | None = None
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_TEMPLATE = msgspec.json.Decoder(_Template)


class PodBodies:
    """Made once a turn; each body then costs two concatenations, for any size of the spec."""

    __slots__ = ("_head", "_tail")

    def __init__(self, namespace: str, generate_name: str, template: bytes, ref: OwnerRef) -> None:
        """Raises TemplateError for a template that cannot be read or has no labels, or an incomplete
        reference.
        """
        check_controller_ref(ref)
        try:
            decoded = _TEMPLATE.decode(template)
        except msgspec.MsgspecError as error:
            raise TemplateError(f"unable to create pods, template: {error}") from error
        meta = decoded.metadata or _Meta()
        if not meta.labels:
            raise TemplateError("unable to create pods, no labels")
        rest: dict[str, object] = {"generateName": generate_name, "namespace": namespace, "labels": meta.labels}
        if meta.annotations:
            rest["annotations"] = meta.annotations
        if meta.finalizers:
            rest["finalizers"] = meta.finalizers
        rest["ownerReferences"] = [reference_json(ref)]
        self._head = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":'
        self._tail = b"," + msgspec.json.encode(rest)[1:] + b',"spec":' + bytes(decoded.spec) + b"}"

    def body(self, name: str) -> bytes:
        """JSON of the pod of that name."""
        return self._head + msgspec.json.encode(name) + self._tail


def pod_bodies(
    owner: ReplicaSet, revision: str = "", nodes: Mapping[str, str] = _NONE, *, flavour: Flavour
) -> PodBodies:
    """For the pods of a ReplicaSet or its like, which are all equal. Raises TemplateError."""
    return PodBodies(owner.namespace, name_prefix(owner.name), owner.template, controller_ref_of(owner, flavour))


def check_controller_ref(ref: OwnerRef | None) -> None:
    """Raises TemplateError unless the reference makes its owner the controller and holds up its deletion."""
    if ref is None:
        raise TemplateError("the owner reference is missing")
    if not ref.api_version:
        raise TemplateError("the owner reference has no apiVersion")
    if not ref.kind:
        raise TemplateError("the owner reference has no kind")
    if not ref.controller:
        raise TemplateError("the owner reference is not that of a controller")
    if not ref.block_owner_deletion:
        raise TemplateError("the owner reference does not block the owner's deletion")
