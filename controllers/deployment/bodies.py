"""Bodies of the requests about a Deployment and its ReplicaSets.

Every patch names a UID and a resourceVersion: the API refuses it if anything has changed since. Upstream:
`pkg/controller/deployment/sync.go` (getNewReplicaSet, scaleReplicaSet), `rollback.go`, `util/deployment_util.go`.
"""

import msgspec

from oarlock.controllers.deployment.annotations import REVISION, ROLLBACK_TO
from oarlock.controllers.deployment.model import Deployment, DeploymentCondition
from oarlock.controllers.deployment.plan import Creation, Rollback, StatusWrite, Update
from oarlock.controllers.flavour import DEPLOYMENT
from oarlock.controllers.history.bodies import collision_patch
from oarlock.controllers.objects.model import HASH_LABEL
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.controllers.objects.status import status_merge_patch
from oarlock.controllers.objects.wire_parts import rfc3339
from oarlock.controllers.ownership.claim import owner_reference

__all__ = ["collision_patch", "creation_body", "rollback_patch", "status_patch", "update_patch"]

_Object = dict[str, msgspec.Raw]
_OBJECT = msgspec.json.Decoder(_Object | None)
_LABELS = msgspec.json.Decoder(dict[str, str] | None)
_NULL = msgspec.Raw(b"null")


def creation_body(deployment: Deployment, creation: Creation) -> bytes:
    """A new ReplicaSet of size 0. Raises ValueError for a template that is not the JSON of one."""
    return msgspec.json.encode(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": creation.name,
                "namespace": deployment.namespace,
                "labels": deployment.template_labels | {HASH_LABEL: creation.hash},
                "annotations": dict(creation.annotations),
                "ownerReferences": [owner_reference(deployment, DEPLOYMENT)],
            },
            "spec": {
                "replicas": 0,
                "minReadySeconds": deployment.min_ready_seconds,
                "selector": _selector(deployment.selector, creation.hash),
                "template": _template(deployment.template, creation.hash),
            },
        }
    )


def update_patch(update: Update, uid: str, resource_version: str) -> bytes:
    """Merge patch of a ReplicaSet. Where neither its size nor its minReadySeconds changes, its spec is left out: its
    generation stays, and nothing has to be observed.
    """
    metadata: dict[str, object] = {"uid": uid, "resourceVersion": resource_version}
    if update.annotations:
        metadata["annotations"] = update.annotations
    spec: dict[str, int] = {}
    if update.replicas != update.replicaset.replicas:
        spec["replicas"] = update.replicas
    if update.min_ready_seconds is not None:
        spec["minReadySeconds"] = update.min_ready_seconds
    return msgspec.json.encode({"metadata": metadata, "spec": spec} if spec else {"metadata": metadata})


def rollback_patch(deployment: Deployment, rollback: Rollback, template_json: bytes, resource_version: str) -> bytes:
    """Strategic merge patch of a Deployment, which replaces its whole template. `template_json`: that of the target;
    not read without one. Raises ValueError for what is not the JSON of a template.
    """
    annotations: dict[str, str | None] = {ROLLBACK_TO: None}
    if rollback.annotations is not None:
        annotations |= dict.fromkeys(deployment.annotations)
        annotations |= rollback.annotations
    patch: dict[str, object] = {
        "metadata": {"uid": deployment.uid, "resourceVersion": resource_version, "annotations": annotations}
    }
    if rollback.target is not None:
        patch["spec"] = {"template": _template(template_json, "") | {"$patch": "replace"}}
    return msgspec.json.encode(patch)


def status_patch(deployment: Deployment, write: StatusWrite, resource_version: str) -> bytes:
    """Merge patch of the status subresource. Fields that are zero are removed, as a typed client leaves them out; the
    collision count is not touched. The server keeps an annotation that is sent with a Deployment's status.
    """
    new, old = write.status, deployment.status
    fields: dict[str, object] = {
        "observedGeneration": new.observed_generation or None,
        "replicas": new.replicas or None,
        "updatedReplicas": new.updated or None,
        "readyReplicas": new.ready or None,
        "availableReplicas": new.available or None,
        "unavailableReplicas": new.unavailable or None,
    }
    if new.terminating != old.terminating:
        fields["terminatingReplicas"] = new.terminating
    if new.conditions != old.conditions:
        fields["conditions"] = [_condition(each) for each in new.conditions] or None
    annotations = {REVISION: write.revision} if write.revision else None
    return status_merge_patch(deployment.uid, resource_version, fields, annotations)


def _condition(condition: DeploymentCondition) -> dict[str, str]:
    fields = {"type": condition.type, "status": condition.status}
    if condition.last_update_ms:
        fields["lastUpdateTime"] = rfc3339(condition.last_update_ms)
    if condition.last_transition_ms:
        fields["lastTransitionTime"] = rfc3339(condition.last_transition_ms)
    if condition.reason:
        fields["reason"] = condition.reason
    if condition.message:
        fields["message"] = condition.message
    return fields


def _selector(selector: LabelSelector | None, hash_: str) -> dict[str, object]:
    """The Deployment's, which also asks for the hash: the ReplicaSets of one Deployment select no pod of each other."""
    found: dict[str, object] = {"matchLabels": (selector.match_labels if selector else {}) | {HASH_LABEL: hash_}}
    if selector and selector.expressions:
        found["matchExpressions"] = [
            {"key": each.key, "operator": each.operator, "values": each.values} for each in selector.expressions
        ]
    return found


def _template(template_json: bytes, hash_: str) -> dict[str, object]:
    """The template with that hash label, or without one if it is empty; all else stays as spelled."""
    try:
        template = _OBJECT.decode(template_json) or {}
        metadata = _OBJECT.decode(template.get("metadata", _NULL)) or {}
        labels = _LABELS.decode(metadata.get("labels", _NULL)) or {}
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a pod template: {error}") from error
    labels.pop(HASH_LABEL, None)
    if hash_:
        labels[HASH_LABEL] = hash_
    return {**template, "metadata": {**metadata, "labels": labels}}
