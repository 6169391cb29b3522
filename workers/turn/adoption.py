"""Adoptions and releases: the first writes of a turn. An error ends the turn before anything is created or deleted.

Upstream: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from oarlock.cluster.answer import Answer
from oarlock.controllers.entries import Controller
from oarlock.controllers.ownership import claim as claims
from oarlock.controllers.ownership.claim import Claimable, Claimer
from oarlock.controllers.plan import Plan
from oarlock.workers.turn.looking import live_owner
from oarlock.workers.turn.steps import Send, Steps, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome


def claim_pods(snapshot: Any, plan: Plan, controller: Controller, outcome: TurnOutcome) -> Steps[Any]:
    """Carry out the plan's claims. Returns the snapshot with what was adopted; raises TurnFailed with every error."""
    adopted = yield from carry_out(snapshot.owner, plan.adopt, plan.release, "pods", "Pod", controller, outcome)
    return msgspec.structs.replace(snapshot, adopted=frozenset(adopted))


def carry_out(
    owner: Claimer,
    adopt: Sequence[Claimable],
    release: Sequence[Claimable],
    resource: str,
    kind: str,
    controller: Controller,
    outcome: TurnOutcome,
) -> Steps[dict[str, str]]:
    """Adopt and release objects of one resource. Returns uid and resourceVersion of each that was adopted.

    Before the first adoption the owner is read live. Raises TurnFailed with every error.
    """
    errors: list[str] = []
    writes = [
        Write("patch", resource, obj.namespace, obj.name, claims.release_patch(obj.uid, [owner.uid]), obj.uid)
        for obj in release
    ]
    if adopt:
        live = yield from live_owner(owner, controller)
        if live.error:
            errors += [claims.cannot_adopt(kind, obj, live.error) for obj in adopt]
        else:
            flavour = controller.flavour
            writes += [
                Write("patch", resource, obj.namespace, obj.name, claims.adopt_patch(owner, flavour, obj.uid), obj.uid)
                for obj in adopt
            ]
    answers: list[Answer] = (yield Send(tuple(writes))) if writes else []
    adopted: dict[str, str] = {}
    for at, (write, answer) in enumerate(zip(writes, answers, strict=True)):
        releases = at < len(release)
        done = claims.released(answer.code) if releases else claims.adopted(answer.code)
        if done is claims.Done.YES:
            outcome.cache_must_pass(resource, answer.resource_version)
            if not releases:
                adopted[write.uid] = answer.resource_version
        elif done is claims.Done.ERROR:
            verb = "release" if releases else "adopt"
            errors.append(f"{verb} {kind} {write.namespace}/{write.name}: {answer.message}")
            outcome.heed_throttling(answer)
    if errors:
        raise outcome.failure("; ".join(errors))
    return adopted
