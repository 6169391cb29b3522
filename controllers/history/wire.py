"""JSON of an apps/v1 ControllerRevision -> model."""

import msgspec

from oarlock.controllers.history.digest import data_digest
from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects.wire_parts import Meta, WireError, decoded, ms_of, owner_refs


class _Revision(msgspec.Struct):
    metadata: Meta
    revision: int | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")


_REVISION = msgspec.json.Decoder(_Revision)


def revision_from_json(raw: bytes) -> tuple[str, ControllerRevision]:
    """An apps/v1 ControllerRevision: its resourceVersion and its projection. Raises WireError."""
    wire = decoded(_REVISION, raw, "ControllerRevision")
    meta = wire.metadata
    try:
        digest = data_digest(bytes(wire.data))
    except ValueError as error:
        raise WireError(f"not the data of a ControllerRevision: {error}") from error
    return meta.resource_version, ControllerRevision(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels or {},
        owner_refs=owner_refs(meta),
        revision=wire.revision or 0,
        digest=digest,
        created_ms=ms_of(meta.creation_timestamp),
        deleting_ms=ms_of(meta.deletion_timestamp),
    )
