"""What is known about an object of a user's own controller. A pure function is asked what it wants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from oarlock.broker.looks.inspect import Inspector
from oarlock.cli.explain.sentences import Subject
from oarlock.cli.tables import listed
from oarlock.controllers.entries import CustomController, DesiredController, StepsController
from oarlock.controllers.objects.model import controller_of
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.registry import WATCHED
from oarlock.controllers.wanted import Changes, Live, UserError, changes
from oarlock.controllers.whole_routes import concerns_entry, named


@dataclass(frozen=True, slots=True)
class CustomOwner(Subject):
    """``plan``: what a turn would write; None if that cannot be told. ``problem``: why the function wants nothing.
    ``later``: that it asks to be called again later. ``misfit``: why the object does not fit its type. ``deadly``:
    workers died over it, so its function is not called here.
    """

    obj: Whole
    rv: str
    controller: CustomController
    owned: tuple[Live, ...]
    plan: Changes | None
    problem: str
    misfit: str
    later: bool = False
    deadly: bool = False

    @property
    def differs(self) -> bool:
        return self.plan is not None and not self.plan.none

    @property
    def waits(self) -> bool:
        held = self.misfit or self.problem or self.later or self.deadly or self.obj.deleting_ms
        return bool(held or (self.plan is not None and (self.plan.waits or self.plan.taken)))

    def sentences(self, kind: str) -> list[str]:
        children = listed([_title(each) for each in self.owned]) or "none"
        said = [
            f"{kind} {self.obj.key} (resourceVersion {self.rv}, generation {self.obj.generation})"
            + (f" has children in the cache: {children}." if self.controller.owned else " is in the cache.")
        ]
        if self.obj.deleting_ms:
            held = f", held by {', '.join(self.obj.finalizers)}" if self.obj.finalizers else ""
            said.append(f"It is being deleted{held}.")
        if self.misfit:
            said += self._of_a_misfit()
        elif self.obj.fault:
            said.append(f"An index function fails on it: {self.obj.fault}.")
        if self.deadly:
            said.append("What its controller wants is not told: to ask it could end this command as it ended workers.")
        if self.later:
            said.append(f"Its controller looks at it again later: {self.problem.rstrip('.') or 'it gave no reason'}.")
        elif self.problem:
            said.append(f"Its controller cannot use it: {self.problem.rstrip('.')}.")
        if self.plan is not None:
            if self.differs:
                said.append(f"A turn would {' and '.join(_writes(self.plan))}.")
            said += [f"{child.kind} {child.name} is made by the controller {by}." for child, by in self.plan.taken]
            if self.plan.waits:
                said.append("It waits until children that are being deleted have gone.")
        return said

    def _of_a_misfit(self) -> list[str]:
        controller, why = self.controller, self.misfit.rstrip(".")
        nothing = f"It does not fit its type, so nothing is done for it: {why}."
        if not isinstance(controller, StepsController) or not self.obj.deleting_ms:
            return [nothing]
        if controller.finalizer not in self.obj.finalizers:
            return [nothing]
        if controller.undo_reads:
            return [f"It does not fit its type; what undoes it takes it all the same: {why}."]
        mend = "mend the object, or have its finalize function take any object, by finalize(raw=True)"
        return [nothing, f"So nothing is undone, and the finalizer {controller.finalizer} stays: {mend}."]

    @property
    def facts(self) -> dict[str, Any]:
        return {"children": [_title(each) for each in self.owned], "problem": self.problem, "misfit": self.misfit}


@dataclass(frozen=True, slots=True)
class Referenced(Subject):
    """An object that others name: a turn about it only wakes them."""

    obj: Whole
    rv: str
    owners: str
    concerned: list[str]

    @property
    def differs(self) -> bool:
        return False

    def sentences(self, kind: str) -> list[str]:
        named_by = f"is named by {self.owners} {listed(self.concerned)}" if self.concerned else "is named by nobody"
        whose = f"{kind} {self.obj.key} (resourceVersion {self.rv})"
        return [f"{whose} {named_by}; a turn about it wakes those that name it."]


def custom_subject(
    inspector: Inspector, controller: CustomController, rv: str, obj: Whole, deadly: bool = False
) -> CustomOwner:
    """Reads the resources of its children whole, as `explain` does for every kind. ``deadly``: workers died over it."""
    owned = tuple(
        each
        for resource in controller.owned
        for each in _cached(inspector, resource)
        if (ref := controller_of(each.obj)) is not None and ref.uid == obj.uid
    )
    plan, problem, later = None, "", False
    misfit = controller.misfit(obj)
    if isinstance(controller, DesiredController) and not misfit and not obj.deleting_ms and not deadly:
        others = [(each.resource, each.obj) for each in _watched(inspector, controller, obj)]
        try:
            wanted = controller.want(obj, [(each.resource, each.obj) for each in owned], others)
            plan = changes(obj.uid, wanted, owned, {}, controller=controller.name, rivals=controller.rivals)
        except UserError as error:
            problem, later = error.message, error.after_ms is not None
    return CustomOwner(obj, rv, controller, owned, plan, problem, misfit, later, deadly)


def _watched(inspector: Inspector, controller: CustomController, obj: Whole) -> Iterator[Live]:
    for resource in controller.watched:
        if resource in controller.names:
            keys = set(named(obj, controller.name, resource))
            yield from (each for each in _cached(inspector, resource) if each.obj.key in keys)
        else:
            entry = concerns_entry(controller.queue, obj.key)
            yield from (each for each in _cached(inspector, resource) if entry in each.obj.keys)


def _cached(inspector: Inspector, resource: str) -> list[Live]:
    decode = WATCHED[resource].decode
    return [Live(resource, cached.rv, decode(cached.blob)) for _, cached in sorted(inspector.objects(resource))]


def _title(live: Live) -> str:
    return f"{WATCHED[live.resource].kind} {live.obj.name}"


def _writes(plan: Changes) -> Iterator[str]:
    for word, names in (
        ("create", [f"{each.kind} {each.name}" for each in plan.create]),
        ("change", [f"{each.child.kind} {each.child.name}" for each in plan.update]),
        ("delete", [_title(each) for each in plan.delete]),
    ):
        if names:
            yield f"{word} {listed(names)}"
