"""What is wanted, and upstream does not do: why, as far as the course itself shows."""

from __future__ import annotations

from oarlock.workers.turn.shadow.course import Course
from oarlock.workers.turn.shadow.judge import NAMED
from oarlock.workers.turn.shadow.seen import ENDING, FINISHED, Child
from oarlock.workers.turn.shadow.wanted import REPLICASETS, Wanted

REFUSED, BACK_OFF, SUCCEEDED, HELD = "refused", "back-off", "succeeded-daemon-pod", "ended-and-held"


def reason_of(course: Course, *, told_refused: bool = False) -> str:
    """Why what is wanted stands; "" where nothing explains it. ``told_refused``: an event of upstream's tells of a
    refused create.
    """
    wanted, seen, version = course.wanted, course.seen, course.version
    if (seen.refused or told_refused) and wanted.creates:
        return REFUSED
    if not seen.nodes:
        return ""
    hanging = {child.node for child in seen.children.values() if child.state == ENDING and _is_over(child)}
    if version < (1, 28) and wanted.creates and wanted.creates.keys() <= hanging:
        return HELD
    victims = [seen.children[uid] for uid in wanted.deletes if uid in seen.children]
    if version < (1, 27) and victims and all(each.like[1].startswith("Succeeded") for each in victims):
        return SUCCEEDED
    if victims and all(each.state == FINISHED for each in victims):
        return BACK_OFF
    return ""


def _is_over(child: Child) -> bool:
    return child.like[1].startswith(("Succeeded", "Failed"))


def told(course: Course) -> str:
    """What is wanted, in words."""
    wanted, children = course.wanted, course.seen.children
    names = sorted(children[uid].name if uid in children else uid for uid in wanted.deletes)
    parts = [f"create {count}{f' on {place}' if place else ''}" for place, count in sorted(_pods(wanted).items())]
    if wanted.creates.get(REPLICASETS):
        parts.append(f"create a ReplicaSet of size {wanted.new_size}")
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        parts.append(f"delete {', '.join(names[:NAMED])}{more}")
    parts += [
        f"size {children[uid].name if uid in children else uid} to {size}" for uid, size in sorted(wanted.sizes.items())
    ]
    parts += [f"adopt, release or label {len(wanted.touches)}"] if wanted.touches else []
    parts += [f"status {wanted.status}"] if wanted.status else []
    return ", ".join([*parts, *wanted.others])


def _pods(wanted: Wanted) -> dict[str, int]:
    return {place: count for place, count in wanted.creates.items() if place != REPLICASETS}
