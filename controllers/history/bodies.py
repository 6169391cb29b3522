"""Bodies of the requests about revisions, and about pods that get another revision's label.

Every patch is a strategic merge patch with a UID; those of revisions have a resourceVersion too. The API refuses a
patch if another object has the name, and that of a revision if anything about the revision has changed.
Upstream: pkg/controller/daemon/update.go (snapshot, dedupCurHistories).
"""

from collections.abc import Mapping

import msgspec

from oarlock.controllers.flavour import Flavour
from oarlock.controllers.history.decide import HistoryOwner
from oarlock.controllers.history.digest import revision_data
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision
from oarlock.controllers.objects.status import status_merge_patch
from oarlock.controllers.ownership.claim import owner_reference


def collision_patch(owner_uid: str, collision_count: int, resource_version: str) -> bytes:
    """Sets the collision count in the owner's status, and nothing else.

    If two writers meet the same collision, only one counts it: the other's `resource_version` is old by then.
    """
    return status_merge_patch(owner_uid, resource_version, {"collisionCount": collision_count})


class _Meta(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Meta | None = None


_OBJECT = msgspec.json.Decoder(_Object | None)


def annotations_of(raw: bytes) -> dict[str, str]:
    """The annotations in the JSON of an object. Raises ValueError."""
    return _meta(raw).annotations or {}


def _meta(raw: bytes) -> _Meta:
    try:
        decoded = _OBJECT.decode(raw)
    except msgspec.MsgspecError as error:
        raise ValueError(f"metadata: {error}") from error
    return (decoded and decoded.metadata) or _Meta()


def revision_body(
    owner: HistoryOwner,
    flavour: Flavour,
    annotations: Mapping[str, str],
    name: str,
    revision_hash: str,
    number: int,
) -> bytes:
    """A new ControllerRevision. `annotations`: all of the owner's, which is how a change cause gets into the history.

    Raises ValueError for a template that is not the JSON of one.
    """
    labels = _meta(owner.template).labels or {}
    metadata: dict[str, object] = {
        "name": name,
        "namespace": owner.namespace,
        "labels": labels | {HASH_LABEL: revision_hash},
        "ownerReferences": [owner_reference(owner, flavour)],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return msgspec.json.encode(
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": metadata,
            "data": msgspec.Raw(revision_data(owner.template)),
            "revision": number,
        }
    )


def label_revision_patch(revision: ControllerRevision, resource_version: str) -> bytes:
    """Labels a revision without a hash with its own name, as upstream does."""
    metadata = {"uid": revision.uid, "resourceVersion": resource_version, "labels": {HASH_LABEL: revision.name}}
    return msgspec.json.encode({"metadata": metadata})


def renumber_patch(revision: ControllerRevision, resource_version: str, number: int) -> bytes:
    """Makes a revision the latest again."""
    metadata = {"uid": revision.uid, "resourceVersion": resource_version}
    return msgspec.json.encode({"metadata": metadata, "revision": number})


def relabel_pod_patch(pod_uid: str, revision_hash: str) -> bytes:
    """Makes a pod one of another revision that holds the same template."""
    return msgspec.json.encode({"metadata": {"uid": pod_uid, "labels": {HASH_LABEL: revision_hash}}})
