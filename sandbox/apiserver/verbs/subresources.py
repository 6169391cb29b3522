"""The subresources scale, binding and finalize. (Status is in `rest`.)"""

from __future__ import annotations

from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver import patches, validation
from oarlock.sandbox.apiserver.custom import scale as custom_scale
from oarlock.sandbox.apiserver.errors import ApiError, FieldError, bad_request, conflict, invalid, not_found
from oarlock.sandbox.apiserver.http.negotiation import check_types
from oarlock.sandbox.apiserver.http.paths import Target
from oarlock.sandbox.apiserver.kinds.kind import Kind
from oarlock.sandbox.apiserver.shapes import check_shape
from oarlock.sandbox.apiserver.text.selectors import labels_text, selector_text
from oarlock.sandbox.apiserver.text.times import rfc3339
from oarlock.sandbox.apiserver.verbs import content
from oarlock.sandbox.apiserver.verbs.rest import Outcome, Params, Rest, is_dry_run, success

Obj = dict[str, Any]

_SCALE_VERSION: Final = "autoscaling/v1"


def no_subresource(target: Target) -> ApiError:
    """404 for a part this server does not have, in words a person can use."""
    kind = target.kind
    what = f"{kind.plural}/{target.subresource}"
    why = "pods here are simulated: there is no container to ask" if kind.name == "Pod" else "not served here"
    return ApiError(
        404,
        "NotFound",
        f"the server could not find the requested resource ({what} {target.name}): {why}",
        {"name": target.name, "group": kind.group, "kind": kind.plural},
    )


# -- scale ---------------------------------------------------------------------------------------


def scale_of(obj: Obj) -> Obj:
    """The `autoscaling/v1` Scale of an object with spec.replicas and spec.selector."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    is_plain = obj.get("kind") == "ReplicationController"  # whose selector is a map of labels
    selector_line = (labels_text if is_plain else selector_text)(spec.get("selector"))
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": _SCALE_VERSION,
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": selector_line,
        },
    }


def _scale(kind: Kind, obj: Obj) -> Obj:
    """The Scale of an object of any kind that has one. Raises ApiError 500 where a custom resource lacks a size."""
    return scale_of(obj) if kind.custom is None else custom_scale.scale_of(kind.custom, obj)


def get_scale(rest: Rest, target: Target) -> Outcome:
    stored = rest.store.require(target.kind.name, target.namespace, target.name)
    return Outcome(200, orjson.dumps(_scale(target.kind, stored.obj)), stored.obj["metadata"])


def update_scale(rest: Rest, target: Target, scale: Obj, params: Params) -> Outcome:
    """PUT of a Scale. Raises ApiError 400, 404, 409, 422."""
    kind = target.kind
    old = content.from_store(kind, rest.store.require(kind.name, target.namespace, target.name).obj)
    if (scale.get("apiVersion"), scale.get("kind")) != (_SCALE_VERSION, "Scale"):
        raise bad_request(f"the body must be a Scale of {_SCALE_VERSION}")
    check_shape("Scale", scale)
    meta, spec = scale.get("metadata") or {}, scale.get("spec") or {}
    name = meta.get("name") or target.name
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if errors := validation.validate_scale(scale):
        raise invalid("Scale", "autoscaling", target.name, errors)
    replicas = spec.get("replicas") or 0
    changed_meta = dict(old["metadata"])
    changed_meta["resourceVersion"] = meta.get("resourceVersion") or ""
    if meta.get("uid"):
        changed_meta["uid"] = meta["uid"]
    if kind.custom is None:
        changed = {**old, "metadata": changed_meta, "spec": {**(old.get("spec") or {}), "replicas": replicas}}
    else:
        changed = {**custom_scale.with_replicas(kind.custom, old, replicas), "metadata": changed_meta}
    whole = Target(kind, target.namespace, target.name)
    stored = rest.replace(whole, changed, params)
    return Outcome(200, orjson.dumps(_scale(kind, stored.obj)), stored.obj["metadata"])


def patch_scale(rest: Rest, target: Target, content_type: str, patch: Any, params: Params) -> Outcome:
    """PATCH of a Scale, applied to the Scale as it is now."""
    stored = rest.store.require(target.kind.name, target.namespace, target.name)
    scale = patches.apply(content_type, "Scale", _scale(target.kind, stored.obj), patch)
    return update_scale(rest, target, scale, params)


# -- binding -------------------------------------------------------------------------------------


def bind(rest: Rest, target: Target, binding: Obj, params: Params) -> Outcome:
    """POST of a Binding: gives a pod its node.

    Raises ApiError 404, 409 if the pod has a node or is being deleted
    (upstream: pkg/registry/core/pod/storage/storage.go, setPodHostAndAnnotations).
    """
    check_shape("Binding", binding)
    node = (binding.get("target") or {}).get("name")
    kind_name = (binding.get("target") or {}).get("kind") or "Node"
    if not node:
        raise invalid("Binding", "", target.name, [FieldError.required("target.name")])
    if kind_name != "Node":
        raise invalid("Binding", "", target.name, [FieldError.unsupported("target.kind", kind_name, ["Node"])])
    pod = rest.store.require("Pod", target.namespace, target.name).obj
    wanted = (binding.get("metadata") or {}).get("uid")
    if wanted and wanted != pod["metadata"]["uid"]:
        raise conflict(
            "pods",
            "",
            target.name,
            f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {pod['metadata']['uid']}",
        )
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {target.name} is being deleted, cannot be assigned to a host"
        raise conflict("pods/binding", "", target.name, why)
    if pod["spec"].get("nodeName"):
        why = f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise conflict("pods/binding", "", target.name, why)
    stored = rest.store.update_stored("Pod", bound(pod, node, rest.store.clock()), dry_run=is_dry_run(params))
    return Outcome(201, success(201), stored.obj["metadata"])


def bound(pod: Obj, node: str, now_s: float) -> Obj:
    """`pod` on `node`, with the condition that says so."""
    status = pod.get("status") or {}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(now_s)}
    others = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    return {
        **pod,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": [*others, scheduled]},
    }


# -- finalize ------------------------------------------------------------------------------------


def finalize(rest: Rest, target: Target, namespace: Obj, params: Params) -> Outcome:
    """PUT of a namespace that says what still holds it."""
    check_types(target.kind, namespace)
    name = namespace["metadata"].get("name") or target.name
    if name != target.name:
        raise not_found(target.kind.plural, "", name)
    namespace["metadata"]["name"] = name
    old = rest.store.require("Namespace", "", target.name).obj
    spec = {**(old.get("spec") or {}), "finalizers": (namespace.get("spec") or {}).get("finalizers") or []}
    meta = {**old["metadata"], "resourceVersion": namespace["metadata"].get("resourceVersion") or ""}
    stored = rest.replace(target, {**old, "metadata": meta, "spec": spec}, params)
    return Outcome(200, stored.raw, stored.obj["metadata"])
