"""Whether the API server keeps status.terminatingReplicas, as a process learns it from the answers to its statuses."""

from __future__ import annotations

from oarlock.cluster.answer import Answer
from oarlock.controllers.objects.model import ReplicaSetStatus
from oarlock.controllers.replicaset.terminating import is_kept, says_nothing_else


class KeptCount:
    """The last answer counts. Until there is one the count is written, which is how there comes to be one.

    The count is in every status that is written, also to a server that drops it: so a server that was upgraded is
    found out by the next status. Only a status that would say nothing else is left out while the count is dropped.
    """

    def __init__(self) -> None:
        self._dropped = False

    def in_vain(self, old: ReplicaSetStatus, new: ReplicaSetStatus) -> bool:
        """Whether to write ``new`` over ``old`` would change nothing."""
        return self._dropped and says_nothing_else(old, new)

    def answered(self, old: ReplicaSetStatus, new: ReplicaSetStatus, answer: Answer) -> None:
        """``new`` was written over ``old``."""
        kept = is_kept(old, new, answer.body)
        if kept is not None:
            self._dropped = not kept
