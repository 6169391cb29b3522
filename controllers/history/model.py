"""What the controllers know of a ControllerRevision: projection, hash (the label of its pods), name.

Upstream, of the hash: pkg/controller/controller_utils.go (ComputeHash), pkg/util/hash/hash.go, apimachinery
pkg/util/rand/rand.go (SafeEncodeString). Upstream hashes a dump of Go values, which nothing else can reproduce; here it
is the digest of the template.
"""

from oarlock.controllers.objects.model import Namespaced, OwnerRef

HASH_LABEL = "controller-revision-hash"
_FNV_OFFSET, _FNV_PRIME, _MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF
_DIGITS = str.maketrans("0123456789", "456789bcdf")  # letters that form no words


class ControllerRevision(Namespaced, frozen=True):
    """One revision of an owner's template. `digest` stands for the content: equal digests, equal templates
    (see digest.py).
    """

    labels: dict[str, str]
    owner_refs: tuple[OwnerRef, ...] = ()
    revision: int = 0
    digest: str = ""
    created_ms: int = 0
    deleting_ms: int = 0

    @property
    def hash(self) -> str:
        """The hash label; empty where it is missing."""
        return self.labels.get(HASH_LABEL, "")


def revision_hash(template_digest: str, collision_count: int | None) -> str:
    """Up to ten characters that are legal in a label and in a name. No collision count differs from one of 0."""
    text = template_digest.encode()
    if collision_count is not None:
        text += (collision_count & _MASK).to_bytes(8, "little")
    return str(fnv32a(text)).translate(_DIGITS)


def fnv32a(data: bytes) -> int:
    """32-bit FNV-1a."""
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & _MASK
    return value


def revision_name(owner_name: str, revision_hash: str) -> str:
    """`<owner>-<hash>`; never cut, as upstream does not either."""
    return f"{owner_name}-{revision_hash}"
