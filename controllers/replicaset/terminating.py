"""status.terminatingReplicas, which not every API server keeps: what is dropped would be written again for ever.

Its gate is on by default since 1.35 (upstream: DeploymentReplicaSetTerminatingReplicas), and servers of one cluster
may differ while it is upgraded. So no version is asked: the answer to a status that was written shows what was kept.
"""

import msgspec

from oarlock.controllers.objects.model import ReplicaSetStatus


class _Status(msgspec.Struct, gc=False, rename="camel"):
    terminating_replicas: int | None = None


class _Object(msgspec.Struct, gc=False):
    status: _Status | None = None


_OBJECT = msgspec.json.Decoder(_Object)


def is_kept(old: ReplicaSetStatus, new: ReplicaSetStatus, body: bytes) -> bool | None:
    """Whether the server kept the count in `new`, by its answer to the request that wrote it over `old`. None where the
    answer does not tell: the count was there already, or there is no status in it.
    """
    if new.terminating is None or new.terminating == old.terminating:
        return None
    try:
        found = _OBJECT.decode(body).status
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return None if found is None else found.terminating_replicas == new.terminating


def says_nothing_else(old: ReplicaSetStatus, new: ReplicaSetStatus) -> bool:
    """Whether a count that `old` lacks altogether is all that `new` has beyond it."""
    return old.terminating is None and new == msgspec.structs.replace(old, terminating=new.terminating)
