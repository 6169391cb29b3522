"""What the controllers know of a ControllerRevision."""

import msgspec

from oarlock.controllers.objects.model import OwnerRef

HASH_LABEL = "controller-revision-hash"


class ControllerRevision(msgspec.Struct, frozen=True, array_like=True):
    """One revision of an owner's template. `digest` stands for the content: equal digests, equal templates
    (see digest.py).
    """

    namespace: str
    name: str
    uid: str
    labels: dict[str, str]
    owner_refs: tuple[OwnerRef, ...] = ()
    revision: int = 0
    digest: str = ""
    created_ms: int = 0
    deleting_ms: int = 0

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def hash(self) -> str:
        """The hash label; empty where it is missing."""
        return self.labels.get(HASH_LABEL, "")
