"""Differences that are meant, of Deployments. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.differential import rules
from tests.differential.compare import Difference
from tests.differential.moment import Explanation, Moment, surplus, title_of
from tests.differential.reading import REVISION
from tests.differential.snapshot import SCALED, Snapshot

COMPLETE = "NewReplicaSetAvailable"
HISTORY = "revisionHistoryLimit"
_DONE = re.compile(r'ReplicaSet "\S+" has successfully progressed\.')
CREATED, DELETED = "Normal SuccessfulCreate", "Normal SuccessfulDelete"


def cleaned_by_revision(difference: Difference, moment: Moment) -> bool:
    """The history of a Deployment was just cut, or has just got longer than its limit: upstream kept the youngest of
    the old ReplicaSets, the fleet those of the highest revisions, and each exactly these and those with pods. A
    template that was changed during a pause has no ReplicaSet yet: then all are old."""
    section, title, *_ = difference.path
    step = moment.steps[-1] if moment.steps else None
    if step is None or section == "revisions" or step.about.get("kind") != "Deployment":
        return False
    deployment = title_of(step)
    specs = [each.about.get("spec", {}) for each in moment.steps_of(deployment)]
    limit: int = next((each[HISTORY] for each in reversed(specs) if HISTORY in each), 10)
    before, after = moment.upstream_before["ages"].get(deployment, []), moment.upstream["ages"].get(deployment, [])
    is_cut = step.what == "change_spec" and HISTORY in specs[-1]
    if title not in before or not (is_cut or step.what in ("change_template", "undo_rollout", "roll_back")):
        return False
    by_age = [*before, *(each for each in after if each not in before)]
    by_revision = sorted(by_age, key=lambda each: _revision(moment.fleet, each) or _revision(moment.fleet_before, each))
    orders = (moment.upstream, by_age), (moment.fleet, by_revision)
    if title not in {*after} ^ {*moment.fleet["ages"].get(deployment, [])}:
        return False
    is_paused = next((each["paused"] for each in reversed(specs) if "paused" in each), False)
    return any(
        all(set(taken["ages"][deployment]) == _kept(taken, order, new, limit) for taken, order in orders)
        for new in ((by_revision[-1], "") if is_paused else by_revision[-1:])
    )


def _kept(taken: Snapshot, order: Sequence[str], new: str, limit: int) -> set[str]:
    """Of ReplicaSets in the order they go, those that are left."""
    old = [each for each in order if each != new]
    gone = old[: max(0, len(old) - limit)]
    return {each for each in order if each not in gone or taken["owners"].get(each, {}).get("replicas")}


def scaled_by_hand(difference: Difference, moment: Moment) -> bool:
    """Somebody scaled a Deployment's ReplicaSet, and the Deployment put the size back: whether pods were created or
    deleted in between is chance. As many more were created as were deleted."""
    section, title, *rest = difference.path
    if section != "events" or rest not in ([CREATED], [DELETED]):
        return False
    deployment = f"Deployment/{title.removeprefix('ReplicaSet/').partition(':')[0]}"
    if all(step.what != "scale_replicaset" for step in moment.steps_of(deployment)):
        return False
    theirs, ours = (taken["events"][title]["counts"] for _, taken in moment.sides())
    return len({ours.get(reason, 0) - theirs.get(reason, 0) for reason in (CREATED, DELETED)}) == 1


def rollback_told_again(difference: Difference, moment: Moment) -> bool:
    """Upstream tells what came of a rollback before it writes that, and tells it again where the write conflicts, as
    after the condition of a resumed Deployment. The fleet tells it once written. No more than what was told before."""
    section, title, *rest = difference.path
    if section != "events" or not rest[0].partition(" ")[2].startswith("DeploymentRollback"):
        return False
    theirs, ours = (taken["events"][title]["again"].get(rest[0], 0) for _, taken in moment.sides())
    return 0 < -surplus(difference) <= theirs - ours


def recreate_rolled_back(difference: Difference, moment: Moment) -> bool:
    """A rollback under Recreate came before the present template had a ReplicaSet: upstream makes that one with all its
    pods beside the old ones, and takes them away again. The fleet makes it without pods."""
    section, title, *rest = difference.path
    deployment = f"Deployment/{title.partition('/')[2].partition(':')[0]}"
    steps = moment.steps_of(deployment)
    if section != "events" or not _recreates(moment, deployment) or all(each.what != "roll_back" for each in steps):
        return False
    if rest in ([CREATED], [DELETED]):
        theirs, ours = (taken["events"][title]["counts"] for _, taken in moment.sides())
        more = {theirs.get(reason, 0) - ours.get(reason, 0) for reason in (CREATED, DELETED)}
        return len(more) == 1 and min(more) > 0
    return rest[0].startswith(SCALED) and surplus(difference) == -1


def who_is_done(difference: Difference, moment: Moment) -> bool:
    """A template came back, and its ReplicaSet got its pods before a status showed pods of both: the condition goes on
    naming the ReplicaSet that was complete before. Whether that happens is chance; all else of the conditions is equal.
    Under Recreate no status ever shows pods of both: there the same comes of a conflict when the new one was created.
    """
    section, title, *rest = difference.path
    if section != "owners" or rest != ["conditions"]:
        return False
    told = [each for side in (difference.upstream, difference.fleet) for each in side if each[2:3] == [COMPLETE]]
    others = [[each for each in side if each[2:3] != [COMPLETE]] for side in (difference.upstream, difference.fleet)]
    if len(told) != 2 or others[0] != others[1]:
        return False
    for _, taken in moment.sides():
        sets = [taken["owners"][each]["annotations"] for each in taken["ages"].get(title, ())]
        newest = max(sets, key=lambda each: int(each.get(REVISION, 0)), default={})
        if f"{REVISION}-history" not in newest and not _recreates(moment, title):
            return False
    return all(_DONE.fullmatch(message) for *_, message in told)


def first_pods_unseen(difference: Difference, moment: Moment) -> bool:
    """A new template's first pods were there before any status without them: upstream goes on saying that the
    ReplicaSet was created, or that the one before is done, and then no deadline passes. All else of the conditions is
    equal."""
    section, _, *rest = difference.path
    if section != "owners" or rest != ["conditions"]:
        return False
    sides = difference.upstream, difference.fleet
    theirs, ours = ([each for each in side if each[:1] == ["Progressing"]] for side in sides)
    others = [[each for each in side if each[:1] != ["Progressing"]] for side in sides]
    if len(theirs) != 1 or len(ours) != 1 or others[0] != others[1]:
        return False
    moving = re.fullmatch(r'(ReplicaSet "\S+") (is|has timed out) progressing\.', ours[0][3])
    if ours[0][1:3] not in (["True", "ReplicaSetUpdated"], ["False", "ProgressDeadlineExceeded"]) or moving is None:
        return False
    if theirs[0][1:3] == ["True", COMPLETE]:
        return _DONE.fullmatch(theirs[0][3]) is not None and not theirs[0][3].startswith(moving[1])
    created = f"Created new replica set {moving[1].partition(' ')[2]}"
    return moving[2] == "is" and theirs[0][1:] == ["True", "NewReplicaSetCreated", created]


def overtaken_size(difference: Difference, moment: Moment) -> bool:
    """A Deployment gave a ReplicaSet a size and soon another one: whether pods came and went in between is chance. As
    many more were created as were deleted, and no more than the Deployment asks for."""
    section, title, *rest = difference.path
    if section != "events" or rest not in ([CREATED], [DELETED]) or not title.startswith("ReplicaSet/"):
        return False
    deployment = f"Deployment/{title.removeprefix('ReplicaSet/').partition(':')[0]}"
    specs = [each.about.get("spec", {}) for each in moment.steps_of(deployment)]
    largest = max((each["replicas"] for each in specs if "replicas" in each), default=0)
    theirs, ours = (taken["events"][title]["counts"] for _, taken in moment.sides())
    more = {theirs.get(reason, 0) - ours.get(reason, 0) for reason in (CREATED, DELETED)}
    rolled = any(step.what in ("change_template", "undo_rollout", "roll_back") for step in moment.steps_of(deployment))
    return rolled and len(more) == 1 and abs(more.pop()) <= largest


def _recreates(moment: Moment, deployment: str) -> bool:
    """Whether it does, or did."""
    specs = [each.about.get("spec", {}) for each in moment.steps_of(deployment)]
    return any(each.get("strategy", {}).get("type") == "Recreate" for each in specs)


def _revision(taken: Snapshot, title: str) -> int:
    return int(taken["owners"].get(title, {}).get("annotations", {}).get(REVISION, 0))


MEANT = (
    Explanation("cleaned-by-revision", cleaned_by_revision, until=rules.CLEANED_BY_REVISION),
    Explanation("scaled-by-hand", scaled_by_hand),
    Explanation("rollback-told-again", rollback_told_again),
    Explanation("recreate-rolled-back", recreate_rolled_back),
    Explanation("who-is-done", who_is_done),
    Explanation("first-pods-unseen", first_pods_unseen),
    Explanation("overtaken-size", overtaken_size),
)
