"""Which old revisions go. Upstream: cleanupHistory of pkg/controller/daemon/update.go."""

from collections.abc import Collection, Iterable

from oarlock.controllers.history.model import ControllerRevision


def prunable(
    old: Iterable[ControllerRevision], live_hashes: Collection[str], limit: int
) -> tuple[ControllerRevision, ...]:
    """Those to delete so that `limit` old revisions stay, lowest number first; the current one is not among `old`.

    `live_hashes`: the hash labels of the owner's pods, the ending ones included. A revision that bears one of them
    stays, so more than `limit` may; two with the same label protect each other. What is being deleted already
    counts as gone.
    """
    staying = sorted((each for each in old if not each.deleting_ms), key=lambda each: (each.revision, each.name))
    surplus = len(staying) - limit
    if surplus <= 0:
        return ()
    return tuple([each for each in staying if not (each.hash and each.hash in live_hashes)][:surplus])
