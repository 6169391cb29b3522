"""What is to be done about the revisions of an owner's template, and which of them is the current one.

Upstream: constructHistory, dedupCurHistories and cleanupHistory of pkg/controller/daemon/update.go. Differences:
- Equal templates are recognised by their meaning (digest.py).
- Among equal revisions with equal numbers the younger one is kept, not the one that happens to be listed last.
- One that is being deleted already is neither kept beside another nor deleted again.
- Only pods of a duplicate are labelled anew, not those of older templates (kubernetes#111280).
"""

from collections.abc import Collection, Iterable
from typing import Protocol

import msgspec

from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision, revision_hash
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.ownership.claim import Claimer, claim

Revisions = tuple[ControllerRevision, ...]


class _Status(Protocol):
    @property
    def collision_count(self) -> int | None: ...


class HistoryOwner(Claimer, Protocol):
    """What the history reads of an owner; the template itself only to make a revision of it."""

    @property
    def generation(self) -> int: ...
    @property
    def template(self) -> bytes: ...
    @property
    def template_digest(self) -> str: ...
    @property
    def status(self) -> _Status: ...


class History(msgspec.Struct, frozen=True):
    """What to do, in this order. If the template is unchanged and the revisions are in order, nothing is written.

    `adopt`, `release`: revisions. `unlabelled`: ours without a hash label; each gets its name as the label. `current`:
    the revision with the owner's template; None if one must be made (`create`; never while the owner is being deleted).
    `hash`: the label of pods of the current template, as it is once all is done. `number`: that of a new revision.
    `renumber`: the current revision gets it too, because another one is newer: the owner went back to it. `duplicates`:
    other revisions with the same template; their pods get another label before these are deleted. `old`: all other
    revisions, also those being deleted.
    """

    adopt: Revisions
    release: Revisions
    unlabelled: Revisions
    current: ControllerRevision | None
    hash: str
    create: bool
    number: int
    renumber: bool
    duplicates: Revisions
    old: Revisions

    @property
    def writes(self) -> bool:
        """Whether carrying it out sends any request."""
        more = self.adopt or self.release or self.unlabelled or self.duplicates
        return bool(self.create or self.renumber or more)


def decide_history(
    owner: HistoryOwner, revisions: Iterable[ControllerRevision], adopted: frozenset[str] | None = None
) -> History:
    """`revisions`: those that the owner controls and orphans of its namespace, in any order; others' are left out.

    `adopted`: None before claims are made: every adoption counts as done. Afterwards the UIDs of the orphans that were
    adopted, and every other orphan stays one. An owner without a selector, or with an empty or invalid one, has no
    revisions and gets none.
    """
    selector = owner.selector
    if selector is None or selector.empty or selector.error:
        return _nothing(owner)
    claims = claim(owner, revisions).carried_out(adopted)
    claimed = claims.claimed
    same = sorted((each for each in claimed if each.digest == owner.template_digest), key=_precedence)
    old = tuple(each for each in claimed if each.digest != owner.template_digest)
    number = max((each.revision for each in old), default=0) + 1
    current = same[-1] if same else None
    leave = bool(owner.deleting_ms)
    return History(
        adopt=tuple(claims.adopt),
        release=tuple(claims.release),
        unlabelled=() if leave else tuple(each for each in claimed if not each.hash and not each.deleting_ms),
        current=current,
        hash=hash_of(current) if current else _new_hash(owner),
        create=current is None and not leave,
        number=number,
        renumber=current is not None and current.revision < number and not leave,
        duplicates=() if leave else tuple(each for each in same[:-1] if not each.deleting_ms),
        old=old,
    )


def _nothing(owner: HistoryOwner) -> History:
    return History((), (), (), None, _new_hash(owner), False, 1, False, (), ())


def mislabelled(history: History, pods: Iterable[Pod]) -> list[Pod]:
    """The owner's pods with the hash of a duplicate. They have the present template, but would be replaced once the
    duplicate has gone, unless they get the label of the revision that is kept.

    If another revision has the same hash, it does not show which template a pod has: such pods are left as they are.
    """
    others = {history.hash, *map(hash_of, history.old)}
    hashes = {hash_of(each) for each in history.duplicates} - others
    return [pod for pod in pods if pod.labels.get(HASH_LABEL) in hashes]


def _new_hash(owner: HistoryOwner) -> str:
    return revision_hash(owner.template_digest, owner.status.collision_count)


def prunable(
    old: Iterable[ControllerRevision], live_hashes: Collection[str], limit: int
) -> tuple[ControllerRevision, ...]:
    """The revisions to delete so that `limit` old ones stay, lowest number first; the current one is not in `old`.

    `live_hashes`: the hash labels of the owner's pods, also of ending ones. A revision with one of them stays, even
    beyond `limit`; of two with the same label both stay. One that is being deleted counts as gone.
    """
    staying = sorted((each for each in old if not each.deleting_ms), key=lambda each: (each.revision, each.name))
    surplus = len(staying) - limit
    if surplus <= 0:
        return ()
    return tuple([each for each in staying if not (each.hash and each.hash in live_hashes)][:surplus])


def hash_of(revision: ControllerRevision) -> str:
    """The hash label of a revision, or the one it will get: its name."""
    return revision.hash or revision.name


def _precedence(revision: ControllerRevision) -> tuple[bool, int, int, str]:
    return not revision.deleting_ms, revision.revision, revision.created_ms, revision.name
