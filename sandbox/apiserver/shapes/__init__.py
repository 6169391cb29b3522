"""The types of the fields this server and its clients read: a body of another shape is refused before anything
looks into it.

Upstream decodes into Go structs and answers 400 where a value does not fit; here msgspec checks the same fields
in C. Fields that are not named are let through as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from oarlock.sandbox.apiserver.errors import bad_request
from oarlock.sandbox.apiserver.shapes import pods, workloads
from oarlock.sandbox.apiserver.shapes.network_and_storage import NETWORK_AND_STORAGE_SHAPES
from oarlock.sandbox.apiserver.shapes.other_kinds import ANYTHING, OTHER_SHAPES

_SHAPES: Final[Mapping[str, Any]] = {
    "Pod": pods.POD,
    "ReplicaSet": workloads.REPLICA_SET,
    "ReplicationController": workloads.REPLICATION_CONTROLLER,
    "DaemonSet": workloads.DAEMON_SET,
    "ControllerRevision": workloads.CONTROLLER_REVISION,
    "Deployment": workloads.DEPLOYMENT,
    "Job": workloads.JOB,
    **OTHER_SHAPES,
    **NETWORK_AND_STORAGE_SHAPES,
}


def check_shape(kind: str, obj: Any) -> None:
    """Raises ApiError 400 if a field of `obj` has a value of another type than the API gives it."""
    try:
        msgspec.convert(obj, _SHAPES.get(kind, ANYTHING))
    except msgspec.ValidationError as problem:
        version = obj.get("apiVersion", "") if isinstance(obj, dict) else ""
        short, said = str(version).rpartition("/")[2], kind.partition(".")[0]
        raise bad_request(
            f'{said} in version "{short}" cannot be handled as a {said}: json: cannot unmarshal: {problem}'
        ) from None
